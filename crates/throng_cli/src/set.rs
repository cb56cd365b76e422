//! `--set NAME=VALUE`: values for parameters of scenarios.

/// Arguments shared by `run` and `check`.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Set {
    /// Set a parameter of the scenario; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    pub values: Vec<(String, String)>,
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    parts
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .ok_or_else(|| "expected a name and a value, such as count=5000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::assignment;

    #[test]
    fn value_may_be_anything_but_the_name_is_required() {
        let pair = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(assignment("count=5000"), pair("count", "5000"));
        assert_eq!(assignment("map = a=b.png"), pair("map", "a=b.png"));
        assert!(assignment("count").is_err());
        assert!(assignment("=5").is_err());
    }
}
