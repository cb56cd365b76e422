//! `throng completions` and `throng man`: shell completions and man pages, generated from the command line.

use std::path::PathBuf;

use clap_complete::Shell;
use clap_mangen::Man as Page;

use super::{CliError, CliStatus, print};

/// Arguments of `throng completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

const EXAMPLES: &str = "Examples:
  throng completions bash > ~/.local/share/bash-completion/completions/throng
  throng completions zsh > ~/.zfunc/_throng
  throng completions fish > ~/.config/fish/completions/throng.fish";

/// Arguments of `throng man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  throng man | man -l -
  throng man map generate | man -l -
  throng man --folder ~/.local/share/man/man1")]
pub(super) struct Man {
    /// Subcommand [default: the page of the program itself]
    command: Vec<String>,
    /// Write all pages to a folder
    #[arg(long, conflicts_with = "command")]
    folder: Option<PathBuf>,
}

impl Completions {
    /// Prints the script.
    pub(super) fn run(&self, mut command: clap::Command) -> Result<CliStatus, CliError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "throng", &mut script);
        print(String::from_utf8_lossy(&script).trim_end())?;
        Ok(CliStatus::Done)
    }
}

impl Man {
    /// Prints a page, or writes all of them.
    pub(super) fn run(&self, command: clap::Command) -> Result<CliStatus, CliError> {
        let mut command = command;
        command.build();
        if let Some(folder) = &self.folder {
            std::fs::create_dir_all(folder)
                .and_then(|()| clap_mangen::generate_to(command, folder))
                .map_err(|error| {
                    CliError::new(format!("could not write to {}: {error}", folder.display()))
                })?;
            return Ok(CliStatus::Done);
        }
        let mut page = &command;
        for name in &self.command {
            let known = page.get_subcommands().map(clap::Command::get_name);
            let known: Vec<&str> = known.filter(|name| *name != "help").collect();
            page = page.find_subcommand(name).ok_or_else(|| {
                let of = page.get_name();
                let list = known.join("`, `");
                CliError::new(match list.as_str() {
                    "" => format!("`{of}` has no subcommands, found `{name}`"),
                    list => format!("`{of}` has no subcommand `{name}`, expected `{list}`"),
                })
            })?;
        }
        let mut text = Vec::new();
        Page::new(page.clone())
            .render(&mut text)
            .map_err(|error| CliError::new(format!("could not generate the page: {error}")))?;
        print(String::from_utf8_lossy(&text).trim_end())?;
        Ok(CliStatus::Done)
    }
}
