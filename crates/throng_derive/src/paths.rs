//! Where the traits are, seen from the crate that derives them.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Ident;

/// `throng_core`: a dependency of its own, or a part of `throng`. Crates that are one of the two name themselves by
/// `extern crate self as …`.
pub fn core() -> TokenStream {
    match crate_name("throng_core") {
        Ok(FoundCrate::Name(name)) => path(&name),
        Ok(FoundCrate::Itself) => quote!(::throng_core),
        Err(_) => {
            let throng = throng();
            quote!(#throng::core)
        }
    }
}

/// `throng`, by the name that the deriving crate gives it.
pub fn throng() -> TokenStream {
    match crate_name("throng") {
        Ok(FoundCrate::Name(name)) => path(&name),
        _ => quote!(::throng),
    }
}

/// The module `wire` of `throng`, `throng_protocol` or `throng_client`, whichever the deriving crate depends on.
pub fn wire() -> TokenStream {
    let found = ["throng", "throng_protocol", "throng_client"]
        .into_iter()
        .find_map(|name| Some((name, crate_name(name).ok()?)));
    let krate = match found {
        Some((_, FoundCrate::Name(name))) => path(&name),
        Some((name, FoundCrate::Itself)) => path(name),
        None => quote!(::throng_protocol),
    };
    quote!(#krate::wire)
}

fn path(name: &str) -> TokenStream {
    let name = Ident::new(name, Span::call_site());
    quote!(::#name)
}
