//! `#[derive(Replicate)]` and `#[derive(ReplicatedAttribute)]`.

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

/// What both derives take from a type.
struct ReplicatedType {
    arguments: ReplicateArguments,
    name: String,
    member: Member,
    /// The implementation of `ReplicatedAttribute`.
    attribute: TokenStream,
}

/// `#[derive(Replicate)]`: the component of a server, which is a `ReplicatedAttribute` as well.
pub fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let throng = paths::throng();
    let wire = quote!(#throng::wire);
    let name = &input.ident;
    let ReplicatedType {
        arguments: settings,
        name: attribute_name,
        member,
        attribute,
    } = replicated_type(input, &wire)?;
    let audience = settings.audience.iter();
    let cadence = settings.cadence.iter();
    let persist = settings.persist.then(|| quote!(.persistent()));
    let (parameters, arguments, conditions) = input.generics.split_for_impl();
    Ok(quote! {
        #attribute

        #[automatically_derived]
        impl #parameters #throng::sync::Replicate for #name #arguments #conditions {
            fn attribute() -> #throng::sync::AttributeSpec {
                #throng::sync::AttributeSpec::new(
                    #attribute_name,
                    <Self as #wire::ReplicatedAttribute>::ID,
                    <Self as #wire::ReplicatedAttribute>::ENCODING,
                ) #(.to(#audience))* #(.at(#cadence))* #persist
            }

            fn value(&self) -> #wire::AttributeValue {
                #wire::AttributeType::to_value(&self.#member)
            }
        }
    })
}

/// `#[derive(ReplicatedAttribute)]`: what a client needs of it.
pub fn expand_attribute(input: &DeriveInput) -> syn::Result<TokenStream> {
    Ok(replicated_type(input, &paths::wire())?.attribute)
}

fn replicated_type(input: &DeriveInput, wire: &TokenStream) -> syn::Result<ReplicatedType> {
    let type_name = &input.ident;
    let arguments = settings(input)?;
    let (member, field) = replicated(input)?;
    let ty = &field.ty;
    let name = arguments.name.as_ref();
    let name = name.map_or_else(|| snake_case(&type_name.to_string()), LitStr::value);
    let encoding = arguments.encoding.as_ref().map_or_else(
        || quote!(<#ty as #wire::AttributeType>::ENCODING),
        ToTokens::to_token_stream,
    );
    let id = arguments.id.as_ref().map_or_else(
        || quote!(#wire::attribute_id(#name)),
        ToTokens::to_token_stream,
    );
    let (parameters, generics, conditions) = input.generics.split_for_impl();
    let attribute = quote! {
        #[automatically_derived]
        impl #parameters #wire::ReplicatedAttribute for #type_name #generics #conditions {
            type Value = #ty;
            const ID: u16 = #id;
            const ENCODING: #wire::Encoding = #encoding;
        }
    };
    Ok(ReplicatedType {
        arguments,
        name,
        member,
        attribute,
    })
}

/// The only field, or the one that is marked.
fn replicated(input: &DeriveInput) -> syn::Result<(Member, &Field)> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(
            &input.ident,
            "expected a struct: implement the trait by hand for other types",
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
