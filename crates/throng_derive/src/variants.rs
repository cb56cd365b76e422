//! `#[derive(Variants)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, LitStr};

use crate::names::snake_case;

pub fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let Data::Enum(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "expected an enum"));
    };
    let mut is_kebab = false;
    for attribute in &input.attrs {
        if attribute.path().is_ident("variants") {
            attribute.parse_nested_meta(|meta| {
                is_kebab = meta.path.is_ident("kebab");
                let error = || meta.error("expected `kebab` in #[variants(…)]");
                is_kebab.then_some(()).ok_or_else(error)
            })?;
        }
    }
    let mut names = Vec::new();
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(Error::new_spanned(variant, "expected no fields"));
        }
        let mut name = snake_case(&variant.ident.to_string());
        if is_kebab {
            name = name.replace('_', "-");
        }
        for attribute in &variant.attrs {
            if attribute.path().is_ident("variants") {
                name = attribute.parse_args::<LitStr>()?.value();
            }
        }
        names.push(name);
    }
    let variants: Vec<_> = data.variants.iter().map(|of| &of.ident).collect();
    let (name, visibility, count) = (&input.ident, &input.vis, variants.len());
    Ok(quote! {
        #[automatically_derived]
        impl #name {
            /// All of them, in their order.
            #visibility const ALL: [Self; #count] = [#(Self::#variants),*];

            /// The name in reports, files and on the command line.
            #[must_use]
            #visibility const fn name(self) -> &'static str {
                match self {
                    #(Self::#variants => #names,)*
                }
            }
        }
    })
}
