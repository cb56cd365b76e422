//! `#[derive(Replicate)]`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Data, DeriveInput, Error, Expr, Field, LitInt, LitStr, Member};

use crate::names::snake_case;
use crate::paths;

/// What `#[replicate(…)]` on the type says.
#[derive(Default)]
struct ReplicateArguments {
    name: Option<LitStr>,
    id: Option<LitInt>,
    encoding: Option<Expr>,
    audience: Option<Expr>,
    cadence: Option<Expr>,
    persist: bool,
}

pub fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let throng = paths::throng();
    let name = &input.ident;
    let settings = settings(input)?;
    let (member, field) = replicated(input)?;
    let ty = &field.ty;
    let attribute_name = settings
        .name
        .map_or_else(|| snake_case(&name.to_string()), |name| name.value());
    let encoding = settings.encoding.map_or_else(
        || quote!(<#ty as #throng::wire::AttributeType>::ENCODING),
        ToTokens::into_token_stream,
    );
    let spec = match settings.id {
        Some(id) => quote!(#throng::sync::AttributeSpec::new(#attribute_name, #id, #encoding)),
        None => quote!(#throng::sync::AttributeSpec::named(#attribute_name, #encoding)),
    };
    let audience = settings.audience.iter();
    let cadence = settings.cadence.iter();
    let persist = settings.persist.then(|| quote!(.persistent()));
    let (parameters, arguments, conditions) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #parameters #throng::sync::Replicate for #name #arguments #conditions {
            fn attribute() -> #throng::sync::AttributeSpec {
                #spec #(.to(#audience))* #(.at(#cadence))* #persist
            }

            fn value(&self) -> #throng::wire::AttributeValue {
                #throng::wire::AttributeType::to_value(&self.#member)
            }
        }
    })
}

/// The only field, or the one that is marked.
fn replicated(input: &DeriveInput) -> syn::Result<(Member, &Field)> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(
            &input.ident,
            "expected a struct: implement `Replicate` by hand for other types",
        ));
    };
    let all: Vec<(Member, &Field)> = data.fields.members().zip(&data.fields).collect();
    let is_marked = |field: &Field| {
        let mut attributes = field.attrs.iter();
        attributes.any(|attribute| attribute.path().is_ident("replicate"))
    };
    let marked = all.iter().filter(|(_, field)| is_marked(field)).cloned();
    let marked: Vec<(Member, &Field)> = marked.collect();
    match (&marked[..], &all[..]) {
        ([(member, field)], _) | ([], [(member, field)]) => Ok((member.clone(), field)),
        _ => Err(Error::new_spanned(
            &input.ident,
            "expected one field, or one field marked #[replicate]: an attribute has one value",
        )),
    }
}

fn settings(input: &DeriveInput) -> syn::Result<ReplicateArguments> {
    let mut settings = ReplicateArguments::default();
    for attribute in &input.attrs {
        if !attribute.path().is_ident("replicate") {
            continue;
        }
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("name") {
                settings.name = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("id") {
                settings.id = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("encoding") {
                settings.encoding = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("audience") {
                settings.audience = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("cadence") {
                settings.cadence = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("persist") {
                settings.persist = true;
            } else {
                return Err(meta.error(
                    "expected `name = \"…\"`, `id = 10`, `encoding = …`, `audience = …`, `cadence = …` or `persist` in \
                     #[replicate(…)]",
                ));
            }
            Ok(())
        })?;
    }
    Ok(settings)
}
