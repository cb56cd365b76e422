//! The fields of a type, and the patterns that bind them.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DataEnum, DeriveInput, Error, Fields, GenericParam, Generics, Ident, parse_quote};

/// A struct, or a variant of an enum.
pub struct Shape<'a> {
    /// `Self { a: field_0, b: field_1 }`, say.
    pub pattern: TokenStream,
    pub fields: Vec<(Ident, &'a syn::Field)>,
}

/// The struct, or the variants of the enum in their order.
pub fn shapes(input: &DeriveInput) -> syn::Result<Vec<Shape<'_>>> {
    match &input.data {
        Data::Struct(data) => Ok(vec![shape(quote!(Self), &data.fields)]),
        Data::Enum(DataEnum { variants, .. }) => Ok(variants
            .iter()
            .map(|variant| {
                let name = &variant.ident;
                shape(quote!(Self::#name), &variant.fields)
            })
            .collect()),
        Data::Union(_) => Err(Error::new_spanned(
            &input.ident,
            "expected a struct or an enum, found a union: implement the trait by hand",
        )),
    }
}

fn shape(path: TokenStream, fields: &Fields) -> Shape<'_> {
    let named: Vec<(Ident, &syn::Field)> = fields
        .iter()
        .enumerate()
        .map(|(at, field)| (format_ident!("field_{at}"), field))
        .collect();
    let bindings = named.iter().map(|(binding, field)| match &field.ident {
        Some(name) => quote!(#name: #binding),
        None => quote!(#binding),
    });
    let pattern = match fields {
        Fields::Named(_) => quote!(#path { #(#bindings),* }),
        Fields::Unnamed(_) => quote!(#path ( #(#bindings),* )),
        Fields::Unit => path,
    };
    Shape {
        pattern,
        fields: named,
    }
}

/// Generics with the trait required of every type parameter.
pub fn with_bound(generics: &Generics, bound: &TokenStream) -> Generics {
    let mut generics = generics.clone();
    for parameter in &mut generics.params {
        if let GenericParam::Type(parameter) = parameter {
            parameter.bounds.push(parse_quote!(#bound));
        }
    }
    generics
}
