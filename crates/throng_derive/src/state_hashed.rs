//! `#[derive(StateHashed)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, ExprPath, Field};

use crate::fields::{shapes, with_bound};
use crate::paths;

/// How a field is hashed.
enum FieldHash {
    Itself,
    Nothing,
    With(ExprPath),
}

pub fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let core = paths::core();
    let name = &input.ident;
    let generics = with_bound(&input.generics, &quote!(#core::hash::StateHashed));
    let (parameters, arguments, conditions) = generics.split_for_impl();
    let is_enum = matches!(input.data, Data::Enum(_));
    let mut arms = Vec::new();
    for (index, shape) in shapes(input)?.iter().enumerate() {
        let pattern = &shape.pattern;
        let index = index as u64;
        let mut feeds = Vec::new();
        for (binding, field) in &shape.fields {
            feeds.push(match field_hash(field)? {
                FieldHash::Itself => quote!(#core::hash::StateHashed::hash(#binding, hasher);),
                FieldHash::Nothing => quote!(let _ = #binding;),
                FieldHash::With(path) => quote!(#path(#binding, hasher);),
            });
        }
        let variant = is_enum.then(|| quote!(hasher.write_u64(#index);));
        arms.push(quote!(#pattern => { #variant #(#feeds)* }));
    }
    let body = if arms.is_empty() {
        quote!(match *self {})
    } else {
        quote!(let _ = &hasher; match self { #(#arms)* })
    };
    Ok(quote! {
        #[automatically_derived]
        impl #parameters #core::hash::StateHashed for #name #arguments #conditions {
            fn hash(&self, hasher: &mut #core::hash::StateHasher) {
                #body
            }
        }
    })
}

fn field_hash(field: &Field) -> syn::Result<FieldHash> {
    let mut feed = FieldHash::Itself;
    for attribute in &field.attrs {
        if !attribute.path().is_ident("state") {
            continue;
        }
        attribute.parse_nested_meta(|meta| {
            feed = if meta.path.is_ident("skip") {
                FieldHash::Nothing
            } else if meta.path.is_ident("with") {
                FieldHash::With(meta.value()?.parse()?)
            } else {
                return Err(meta.error("expected `skip` or `with = path` in #[state(…)]"));
            };
            Ok(())
        })?;
    }
    Ok(feed)
}
