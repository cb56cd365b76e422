// The text is in docs/guide, where GitHub shows it. The link definitions here take precedence over those at the end of each file, so
// that links between pages work in rustdoc as well.

#![doc = "[first_server]: crate::guide::first_server"]
#![doc = "[connecting_clients]: crate::guide::connecting_clients"]
#![doc = "[own_attribute]: crate::guide::own_attribute"]
#![doc = "[players_that_persist]: crate::guide::players_that_persist"]
#![doc = "[own_view_rule]: crate::guide::own_view_rule"]
#![doc = "[matchmaking_to_battle]: crate::guide::matchmaking_to_battle"]
#![doc = "[own_behaviour]: crate::guide::own_behaviour"]
#![doc = "[regression_test]: crate::guide::regression_test"]
#![doc = "[which_algorithm]: crate::guide::which_algorithm"]
#![doc = "[reading_a_report]: crate::guide::reading_a_report"]
#![doc = "[deploying]: crate::guide::deploying"]
#![doc = "[operating]: crate::guide::operating"]
#![doc = "[production]: crate::guide::production"]
#![doc = "[many_machines]: crate::guide::many_machines"]
#![doc = "[coming_from]: crate::guide::coming_from"]
#![doc = "[glossary]: crate::guide::glossary"]
#![doc = ""]
#![doc = include_str!("../docs/guide/README.md")]

/// A module for each page.
macro_rules! pages {
    ($($page:ident)*) => {$(
        #[doc = "[first_server]: crate::guide::first_server"]
        #[doc = "[connecting_clients]: crate::guide::connecting_clients"]
        #[doc = "[own_attribute]: crate::guide::own_attribute"]
        #[doc = "[players_that_persist]: crate::guide::players_that_persist"]
        #[doc = "[own_view_rule]: crate::guide::own_view_rule"]
        #[doc = "[matchmaking_to_battle]: crate::guide::matchmaking_to_battle"]
        #[doc = "[own_behaviour]: crate::guide::own_behaviour"]
        #[doc = "[regression_test]: crate::guide::regression_test"]
        #[doc = "[which_algorithm]: crate::guide::which_algorithm"]
        #[doc = "[reading_a_report]: crate::guide::reading_a_report"]
        #[doc = "[deploying]: crate::guide::deploying"]
        #[doc = "[operating]: crate::guide::operating"]
        #[doc = "[production]: crate::guide::production"]
        #[doc = "[many_machines]: crate::guide::many_machines"]
        #[doc = "[coming_from]: crate::guide::coming_from"]
        #[doc = "[glossary]: crate::guide::glossary"]
        #[doc = ""]
        #[doc = include_str!(concat!("../docs/guide/", stringify!($page), ".md"))]
        pub mod $page {}
    )*};
}

pages! {
    first_server
    connecting_clients
    own_attribute
    players_that_persist
    own_view_rule
    matchmaking_to_battle
    own_behaviour
    regression_test
    which_algorithm
    reading_a_report
    deploying
    operating
    production
    many_machines
    coming_from
    glossary
}
