//! `#[derive(MemoryUse)]`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, ExprPath, Field};

use crate::fields::{shapes, with_bound};
use crate::paths;

/// How a field counts.
enum FieldCount {
    Itself,
    Nothing,
    /// With what its elements own.
    Each,
    /// With what its values own: a map.
    EachValue,
    With(ExprPath),
}

pub fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let core = paths::core();
    let name = &input.ident;
    let generics = with_bound(&input.generics, &quote!(#core::memory::MemoryUse));
    let (parameters, arguments, conditions) = generics.split_for_impl();
    let mut arms = Vec::new();
    for shape in shapes(input)? {
        let pattern = &shape.pattern;
        let mut bytes = Vec::new();
        let mut unused = Vec::new();
        for (binding, field) in &shape.fields {
            let of_itself =
                quote_spanned!(field.ty.span()=> #core::memory::FieldMemory(#binding).heap_bytes());
            bytes.push(match field_count(field)? {
                FieldCount::Itself => of_itself,
                FieldCount::Nothing => {
                    unused.push(binding);
                    continue;
                }
                FieldCount::Each => {
                    quote!((#of_itself + #core::memory::heap_bytes_of(#binding.iter())))
                }
                FieldCount::EachValue => {
                    quote!((#of_itself + #core::memory::heap_bytes_of(#binding.values())))
                }
                FieldCount::With(path) => quote!(#path(#binding)),
            });
        }
        arms.push(quote!(#pattern => {
            #(let _ = #unused;)*
            0usize #(+ #bytes)*
        }));
    }
    let body = if arms.is_empty() {
        quote!(match *self {})
    } else {
        quote!(match self { #(#arms)* })
    };
    Ok(quote! {
        #[automatically_derived]
        impl #parameters #core::memory::MemoryUse for #name #arguments #conditions {
            fn heap_bytes(&self) -> usize {
                #[allow(unused_imports)]
                use #core::memory::CopiedField as _;
                #body
            }
        }
    })
}

fn field_count(field: &Field) -> syn::Result<FieldCount> {
    let mut count = FieldCount::Itself;
    for attribute in &field.attrs {
        if !attribute.path().is_ident("memory") {
            continue;
        }
        attribute.parse_nested_meta(|meta| {
            count = if meta.path.is_ident("skip") {
                FieldCount::Nothing
            } else if meta.path.is_ident("each") {
                FieldCount::Each
            } else if meta.path.is_ident("each_value") {
                FieldCount::EachValue
            } else if meta.path.is_ident("with") {
                FieldCount::With(meta.value()?.parse()?)
            } else {
                return Err(meta.error(
                    "expected `skip`, `each`, `each_value` or `with = path` in #[memory(…)]",
                ));
            };
            Ok(())
        })?;
    }
    Ok(count)
}
