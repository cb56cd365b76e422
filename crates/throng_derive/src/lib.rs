#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod fields;
mod memory_use;
mod names;
mod paths;
mod replicate;
mod state_hashed;
mod variants;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `MemoryUse`: the sum of what the fields hold on the heap; those of types that are `Copy` hold nothing. Field
/// attributes: `#[memory(skip)]`, `#[memory(each)]`, `#[memory(each_value)]`, `#[memory(with = path)]`.
#[proc_macro_derive(MemoryUse, attributes(memory))]
pub fn derive_memory_use(input: TokenStream) -> TokenStream {
    expand(input, memory_use::expand)
}

/// Implements `StateHashed`: feeds the index of an enum's variant and all fields, in the order of their declaration. Field
/// attributes: `#[state(skip)]`, `#[state(with = path)]`.
#[proc_macro_derive(StateHashed, attributes(state))]
pub fn derive_state_hashed(input: TokenStream) -> TokenStream {
    expand(input, state_hashed::expand)
}

/// Implements `Replicate` and `ReplicatedAttribute` for a component with one field, or with one field marked `#[replicate]`. Attributes of the type:
/// `#[replicate(name = "health", id = 10, encoding = Encoding::U16, audience = Audience::OWNER, cadence = Cadence::EveryTick,
/// persist)]`, all optional.
#[proc_macro_derive(Replicate, attributes(replicate))]
pub fn derive_replicate(input: TokenStream) -> TokenStream {
    expand(input, replicate::expand)
}

/// Implements `ReplicatedAttribute` alone, for clients. It takes the attributes of `Replicate`; only `name`, `id` and `encoding` have an
/// effect.
#[proc_macro_derive(ReplicatedAttribute, attributes(replicate))]
pub fn derive_replicated_attribute(input: TokenStream) -> TokenStream {
    expand(input, replicate::expand_attribute)
}

/// Gives an enum without fields `ALL`, its variants in their order, and `name`, in snake_case, or in kebab-case with
/// `#[variants(kebab)]`. A variant with `#[variants("name")]` has that name.
#[proc_macro_derive(Variants, attributes(variants))]
pub fn derive_variants(input: TokenStream) -> TokenStream {
    expand(input, variants::expand)
}

fn expand(
    input: TokenStream,
    by: fn(&DeriveInput) -> syn::Result<proc_macro2::TokenStream>,
) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    by(&input)
        .unwrap_or_else(|error| error.into_compile_error())
        .into()
}
