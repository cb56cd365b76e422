//! The command line: one file per subcommand.
//!
//! ```text
//! arguments ──▶ [`Arguments`] ──▶ subcommand ──▶ stdout: data
//!                                     │     └──▶ stderr: everything else
//!                                     └──▶ [`CliStatus`] ──▶ exit code
//! ```
//! | file | holds |
//! |---|---|
//! | `address.rs` | addresses of other machines |
//! | `network_args.rs` | flags of simulated network conditions |
//! | `bench/` | `throng bench`: systems and the whole tick under load |
//! | `certificate.rs` | the certificate of TCP ports |
//! | `check.rs` | `throng check`: scenarios and maps, without running them |
//! | `client.rs` | `throng client`: synthetic players in another process |
//! | `cluster/` | `throng gateway`, `throng node`, `throng cluster`: several processes (feature `cluster`) |
//! | `color.rs` | failures in red on a terminal |
//! | `db.rs` | `throng db`: maintenance of a player store |
//! | `escape.rs` | escapes for names from outside |
//! | `error.rs` | the common format of errors |
//! | `http_client.rs` | HTTP requests to processes on this machine |
//! | `image.rs` | PNG images |
//! | `machine.rs` | the machine, build and time of a measurement |
//! | `manual.rs` | `throng completions`, `throng man` |
//! | `map/` | `throng map`: info, convert, prepare, render, generate |
//! | `client_faults.rs` | faults of synthetic players |
//! | `outputs.rs` | checks of output files |
//! | `page/` | HTML pages of runs and benches |
//! | `page_actions.rs`, `page_token.rs` | actions that the live page requests; tokens of pages |
//! | `path/` | `throng path`: the algorithms, timed and compared |
//! | `picture/` | maps with marks and a legend |
//! | `relay.rs` | `throng relay`: simulated network conditions, as a process between clients and a server |
//! | `report/` | `throng report`: the results of a run or a bench as a page, and comparisons |
//! | `run/` | `throng run`: runs a scenario |
//! | `attribute_code.rs` | numbers of attributes, as code for clients |
//! | `scenario.rs` | `throng scenario`: the built-in ones, and a template |
//! | `secret_file.rs` | files with keys and tokens |
//! | `seconds.rs` | times in options |
//! | `serve/` | `throng serve`: runs a scenario for players from the network |
//! | `ports.rs` | options of all TCP ports: certificates and proxies |
//! | `set.rs` | values for parameters of scenarios |
//! | `store.rs` | the player store of a run |
//! | `token.rs` | `throng token`: keys and connect tokens |
//! | `token_service.rs` | `throng tokens --listen`: tokens by HTTP |
//! | `trace.rs` | `--trace`: spans of a run as a file |
//! | `key_file.rs`, `key_reload.rs` | files with the keys of tokens; they are read again after SIGHUP |
//! | `memory_table.rs` | memory by module as a table |
//! | `mirror_check.rs` | comparison of a client's mirror with the server |
//! | `terminal.rs` | common parts of subcommands: exit status, signals and terminal output |
//!
//! Exit codes: 0 done and every expectation holds; 1 an expectation fails or has nothing to check, or a cue could not run its action; 2
//! invalid usage or input; 130 and 143 interrupted by SIGINT and SIGTERM.
//!
//! Invariant: invalid input is reported through a [`Printer`], with its location if it has one; it never causes a panic.

mod address;
mod attribute_code;
mod bench;
mod certificate;
mod check;
mod client;
mod client_faults;
#[cfg(feature = "cluster")]
mod cluster;
mod color;
mod db;
mod error;
mod escape;
mod http_client;
mod image;
mod key_file;
mod key_reload;
mod machine;
mod manual;
mod map;
mod memory_table;
mod mirror_check;
mod network_args;
mod outputs;
mod page;
mod page_actions;
mod page_token;
mod path;
mod picture;
mod ports;
mod relay;
mod report;
mod run;
mod scenario;
mod seconds;
mod secret_file;
mod serve;
mod set;
mod store;
mod terminal;
mod token;
mod token_service;
mod trace;

use std::process::ExitCode;

use clap::builder::styling::{AnsiColor, Styles};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ColorChoice, CommandFactory, Parser, Subcommand};
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use error::no_color;
pub use error::{CliError, Printer};
pub use terminal::CliStatus;
use terminal::{
    WIDTH, cores, interrupted_status, is_interrupted, listen_for_interrupt, print, print_failure,
    progress, threads, wrapped,
};

/// Headless simulation server for crowds of players and NPCs.
#[derive(Debug, Parser)]
#[command(
    name = "throng",
    version,
    styles = STYLES,
    max_term_width = 80,
    after_help = after_help()
)]
struct Arguments {
    #[command(flatten)]
    output: Output,
    #[command(subcommand)]
    command: Option<Command>,
}

/// Places these options after those of a subcommand.
const LAST_DISPLAY_ORDER: usize = 900;

/// How much is printed in addition to the data; the same for every subcommand.
#[derive(Clone, Copy, Debug, clap::Args)]
struct Output {
    /// Print errors and failures only
    #[arg(short, long, global = true, display_order = LAST_DISPLAY_ORDER)]
    quiet: bool,
    /// Print more log messages; repeat for even more
    #[arg(short, long, global = true, display_order = LAST_DISPLAY_ORDER + 1)]
    #[arg(action = clap::ArgAction::Count, conflicts_with = "quiet")]
    verbose: u8,
}

/// The subcommands. A new one needs a file, a variant here and an arm in [`main`].
#[derive(Debug, Subcommand)]
enum Command {
    /// Run a scenario (default command)
    Run(Box<run::Run>),
    /// Measure systems, and the whole tick, under synthetic load
    Bench(bench::Bench),
    /// Show the results of a run or benchmark as a page, or compare two of them
    Report(report::ReportCommand),
    /// Validate scenarios and maps without running them
    Check(check::Check),
    /// Show, convert or render a map
    Map(map::Map),
    /// Find paths, measure the algorithms, compare with known lengths
    Path(path::Paths),
    /// Update, check or print a store of players
    Db(db::Db),
    /// Run a scenario in real time and accept players over the network
    Serve(Box<serve::Serve>),
    /// Run a gateway of a cluster: it holds the connections of clients
    #[cfg(feature = "cluster")]
    Gateway(Box<cluster::GatewayCommand>),
    /// Run a node of a cluster: it runs scenes of a world
    #[cfg(feature = "cluster")]
    Node(Box<cluster::NodeCommand>),
    /// Try a cluster on this machine, show its state, drain a node
    #[cfg(feature = "cluster")]
    Cluster(cluster::ClusterCommand),
    /// Connect test players (bots) to a server, over a simulated bad network
    Client(Box<client::ClientCommand>),
    /// Simulate a bad network between clients and a server
    Relay(relay::Relay),
    /// Create a secret key or a token that admits a player, or serve tokens by HTTP
    #[command(visible_alias = "tokens")]
    Token(token::TokenCommand),
    /// List, print or create scenarios
    Scenario(scenario::Scenarios),
    /// Print a shell completion script: bash, zsh, fish, …
    Completions(manual::Completions),
    /// Print a man page
    Man(manual::Man),
}

/// The last line of `throng` without arguments.
const SEE_IT_LIVE: &str = "\nsee it live: throng serve town --inspect 127.0.0.1:7777";

const AFTER_HELP: &str = "Examples:
  throng                                run a town of 2,500 for one minute
  throng run siege --seed 7 --json
  throng run town --picture town.png
  throng check my.ron maps/*.tmap
  throng bench nav --quick
  throng report before.json after.json

Exit codes: 0 success and all expectations hold, 1 an expectation failed,
2 invalid input or usage, 130 or 143 interrupted.";

/// Commands that need another build, and how to get it.
const CLUSTER_BUILD: &str =
    "`throng gateway`, `throng node` and `throng cluster` are in builds with the
feature `cluster`: cargo install --path crates/throng_cli --features cluster";

/// The text below the list of commands.
fn after_help() -> String {
    if cfg!(feature = "cluster") {
        AFTER_HELP.to_owned()
    } else {
        format!("{AFTER_HELP}\n\n{CLUSTER_BUILD}.")
    }
}

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Runs the program on the arguments of the process and returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    let printer = Printer::for_stderr();
    let choice = if no_color() {
        ColorChoice::Never
    } else {
        ColorChoice::Auto
    };
    let command = allow_negative_numbers(command_line());
    let matches = match command.color(choice).try_get_matches() {
        Ok(matches) => matches,
        Err(error) => add_tip(error).exit(),
    };
    let arguments = match <Arguments as clap::FromArgMatches>::from_arg_matches(&matches) {
        Ok(arguments) => arguments,
        Err(error) => error.exit(),
    };
    install_log(arguments.output);
    if !arguments.output.quiet {
        let words = std::env::args_os().skip(1);
        let words = words.map(|word| word.to_string_lossy().into_owned());
        for warning in former_options(words) {
            printer.warning(&CliError::new(warning));
        }
    }
    let outcome = match arguments.command {
        Some(Command::Run(run)) => run.run(arguments.output),
        Some(Command::Bench(bench)) => bench.run(arguments.output.quiet),
        Some(Command::Report(report)) => report.run(),
        Some(Command::Check(check)) => check.run(&printer, arguments.output.quiet),
        Some(Command::Map(map)) => map.run(arguments.output.quiet),
        Some(Command::Path(paths)) => paths.run(arguments.output.quiet),
        Some(Command::Db(db)) => db.run(),
        Some(Command::Serve(serve)) => serve.run(arguments.output.quiet),
        #[cfg(feature = "cluster")]
        Some(Command::Gateway(gateway)) => gateway.run(arguments.output.quiet),
        #[cfg(feature = "cluster")]
        Some(Command::Node(node)) => node.run(arguments.output.quiet),
        #[cfg(feature = "cluster")]
        Some(Command::Cluster(cluster)) => cluster.run(arguments.output),
        Some(Command::Client(client)) => client.run(arguments.output.quiet),
        Some(Command::Relay(relay)) => relay.run(arguments.output.quiet),
        Some(Command::Token(token)) => token.run(),
        Some(Command::Scenario(scenarios)) => scenarios.run(),
        Some(Command::Completions(completions)) => completions.run(command_line()),
        Some(Command::Man(man)) => man.run(command_line()),
        None => run_without_arguments(arguments.output),
    };
    match outcome {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            printer.error(&failure);
            CliStatus::InvalidInput.into()
        }
    }
}

/// Runs the built-in town, and prints at the end how to see it live.
fn run_without_arguments(output: Output) -> Result<CliStatus, CliError> {
    let status = run::Run::town().run(output)?;
    if !output.quiet && matches!(status, CliStatus::Done | CliStatus::Failed) {
        print(SEE_IT_LIVE)?;
    }
    Ok(status)
}

/// The command line. `run` does not take its store from the environment, so that an experiment cannot write to it.
fn command_line() -> clap::Command {
    Arguments::command().mut_subcommand("serve", |serve| {
        serve.mut_arg("store", |store| {
            store.env("THRONG_STORE").hide_env_values(true)
        })
    })
}

/// Accepts `-1` as the value of an option, so that the error is about the value and not about an unknown flag.
fn allow_negative_numbers(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        let is_option = !arg.is_positional() && arg.get_action().takes_values();
        if is_option {
            arg.allow_negative_numbers(true)
        } else {
            arg
        }
    });
    command.mut_subcommands(allow_negative_numbers)
}

/// Former names of options and values, which are still accepted.
const FORMER_NAMES: [(&str, &str); 6] = [
    ("--judge-time", "--check-timing"),
    ("--judge", "--check-targets"),
    ("--film", "--animation"),
    ("--truth", "--mirror-check"),
    ("--inspect-cues", "--inspect-actions"),
    ("directory", "store"),
];

/// A warning for each former name among the arguments.
fn former_options(words: impl Iterator<Item = String>) -> Vec<String> {
    let words: Vec<String> = words.take_while(|word| word != "--").collect();
    let is_bench = words.iter().any(|word| word == "bench");
    let warning = |word: &String| {
        let name = word.split('=').next().unwrap_or_default();
        let (former, current) = FORMER_NAMES.iter().find(|(former, _)| *former == name)?;
        // `directory` is a former value of `bench` only.
        let is_option = former.starts_with("--");
        (is_option || is_bench).then(|| format!("`{former}` is now `{current}`"))
    };
    words.iter().filter_map(warning).collect()
}

/// Adds a tip to the error if a scenario was given in place of a subcommand.
fn add_tip(mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let tip = if is_scenario(name) {
        let name = escape::escaped(name);
        Some(format!("a scenario is played by `throng run {name}`"))
    } else {
        let is_of_cluster = ["gateway", "node", "cluster"].contains(&name.as_str());
        is_of_cluster.then(|| CLUSTER_BUILD.replace('\n', " "))
    };
    if let Some(tip) = tip {
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![tip.into()]),
        );
    }
    error
}

/// Whether a name is that of a scenario instead of a subcommand.
fn is_scenario(name: &str) -> bool {
    let extension = std::path::Path::new(name).extension();
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("ron"))
        || throng_scenario::BUILT_IN
            .iter()
            .any(|built_in| built_in.name == name)
}

/// Any whole number that is not negative.
fn whole_number(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}

/// Sets up tracing: the log, and Tracy in builds with that feature.
fn install_log(output: Output) {
    let subscriber = tracing_subscriber::registry().with(log_layer(output));
    #[cfg(feature = "tracy")]
    let subscriber = subscriber.with(tracing_tracy::TracyLayer::default());
    // Fails if a log already exists, as in tests; that log stays.
    let _ = subscriber.try_init();
}

/// The log goes to stderr. `RUST_LOG` overrides `-q` and `-v`.
fn log_layer<S: Subscriber + for<'span> LookupSpan<'span>>(output: Output) -> impl Layer<S> {
    let level = match (output.quiet, output.verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) => LevelFilter::WARN,
        (false, 1) => LevelFilter::INFO,
        (false, 2) => LevelFilter::DEBUG,
        (false, _) => LevelFilter::TRACE,
    };
    let filter = log_filter(std::env::var("RUST_LOG").ok().as_deref(), level);
    tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(Printer::for_stderr().is_colored())
        .without_time()
        .with_filter(filter)
}

/// The levels of `RUST_LOG`, such as `warn,throng_net=debug`, and `level` for all targets that it does not name.
fn log_filter(directives: Option<&str>, level: LevelFilter) -> Targets {
    let default = Targets::new().with_default(level);
    match directives.map(str::parse::<Targets>) {
        Some(Ok(filter)) if filter.default_level().is_none() => filter.with_default(level),
        Some(Ok(filter)) => filter,
        Some(Err(error)) => {
            let text = format!("RUST_LOG ignored: {error}");
            let help = "use levels such as `warn,throng_net=debug`";
            Printer::for_stderr().warning(&CliError::new(text).with_help(help));
            default
        }
        None => default,
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn log_filter_follows_rust_log_and_else_the_options() {
        let is_logged = |directives, target: &str, level: Level| {
            log_filter(directives, LevelFilter::WARN).would_enable(target, &level)
        };
        for (directives, target, level, expected) in [
            (None, "throng", Level::WARN, true),
            (None, "throng", Level::INFO, false),
            (Some("debug"), "throng", Level::DEBUG, true),
            (
                Some("throng_net=debug"),
                "throng_net::udp",
                Level::DEBUG,
                true,
            ),
            (Some("throng_net=debug"), "throng", Level::DEBUG, false),
            (Some("throng_net=debug"), "throng", Level::WARN, true),
            (Some("off"), "throng", Level::ERROR, false),
            // Invalid directives are ignored.
            (Some("throng=loud"), "throng", Level::WARN, true),
            (Some("throng=loud"), "throng", Level::INFO, false),
        ] {
            let found = is_logged(directives, target, level);
            assert_eq!(found, expected, "{directives:?}, {target}, {level}");
        }
    }

    #[test]
    fn command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn hint_after_the_first_run_is_a_valid_command() {
        let (_, hint) = SEE_IT_LIVE.split_once(": ").unwrap();
        let words = hint.split_whitespace();
        let matches = command_line().try_get_matches_from(words).unwrap();
        assert_eq!(matches.subcommand_name(), Some("serve"));
    }

    #[test]
    fn former_options_are_accepted_with_a_warning() {
        let line = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (former, current) in [
            (
                "run town --judge-time --film a.png",
                "run town --check-timing --animation a.png",
            ),
            ("bench store --judge", "bench store --check-targets"),
            ("bench directory", "bench store"),
            (
                "serve --truth 127.0.0.1:1",
                "serve --mirror-check 127.0.0.1:1",
            ),
            (
                "serve --inspect 127.0.0.1:1 --inspect-cues",
                "serve --inspect 127.0.0.1:1 --inspect-actions",
            ),
            (
                "client --truth=127.0.0.1:1",
                "client --mirror-check=127.0.0.1:1",
            ),
        ] {
            let parsed = |text| {
                let words = std::iter::once("throng".to_owned()).chain(line(text));
                format!("{:?}", Arguments::try_parse_from(words).unwrap().command)
            };
            assert_eq!(parsed(former), parsed(current));
            assert_eq!(former_options(line(current).into_iter()), [""; 0]);
            let differing = line(former)
                .iter()
                .zip(line(current))
                .filter(|(a, b)| *a != b)
                .count();
            assert_eq!(
                former_options(line(former).into_iter()).len(),
                differing,
                "{former}"
            );
        }
        assert_eq!(
            former_options(line("run directory -- --film").into_iter()),
            [""; 0]
        );
        assert_eq!(
            former_options(line("run --film=a.png").into_iter()),
            ["`--film` is now `--animation`"]
        );
    }

    #[test]
    fn every_subcommand_has_an_example() {
        fn check(command: &clap::Command) {
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(
                help.starts_with("Example"),
                "`{}` has no example",
                command.get_name()
            );
            command.get_subcommands().for_each(check);
        }
        check(&Arguments::command());
    }

    #[test]
    fn help_fits_eighty_columns() {
        fn check(command: &mut clap::Command) {
            // The text before wrapping, which could break an example into two lines.
            let written = command.get_after_help().map(ToString::to_string);
            for line in written.iter().flat_map(|text| text.lines()) {
                assert!(line.chars().count() <= 80, "{line}");
            }
            for help in [command.render_long_help(), command.render_help()] {
                for line in help.to_string().lines() {
                    assert!(line.chars().count() <= 80, "{line}");
                }
            }
            command.get_subcommands_mut().for_each(check);
        }
        // Built as when it is shown, so that each subcommand includes the global flags.
        let mut command = command_line();
        command.build();
        check(&mut command);
    }
}
