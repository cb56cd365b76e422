//! `--trace`: the times of every set and system in the first ticks, as a file for Perfetto and Chrome.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing::subscriber::DefaultGuard;
use tracing::{Metadata, Subscriber};
use tracing_chrome::{ChromeLayerBuilder, EventOrSpan, FlushGuard};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use super::outputs::{open, truncate};
use super::{CliError, Output, log_layer};

/// Number of traced ticks, so that the file stays small enough for a viewer.
pub(super) const TRACE_TICKS_MAX: u64 = 1_000;

/// A trace and its file. It must outlive the traced app: dropping the app closes its spans, which needs the subscriber that created them to
/// be still installed on this thread.
pub(super) struct RunTrace {
    /// `None` after the file was completed.
    file: Option<FlushGuard>,
    error: Arc<OnceLock<io::Error>>,
    path: String,
    _subscriber: DefaultGuard,
}

impl RunTrace {
    /// Starts a trace on this thread. Must be called before the app is built, because systems create their spans then.
    pub fn start(path: &Path, output: Output) -> Result<Self, CliError> {
        let (file, _) = open(path)?;
        truncate(std::slice::from_ref(&file))?;
        let fault = Arc::default();
        let writer = FirstErrorFile {
            file,
            error: Arc::clone(&fault),
        };
        let (spans, ending) = ChromeLayerBuilder::new()
            .writer(writer)
            .include_locations(false)
            .name_fn(Box::new(|shown| match shown {
                EventOrSpan::Event(event) => event.metadata().name().to_owned(),
                EventOrSpan::Span(span) => match span.extensions().get::<SpanName>() {
                    Some(SpanName(name)) => name.clone(),
                    None => span.name().to_owned(),
                },
            }))
            .category_fn(Box::new(|shown| match shown {
                EventOrSpan::Event(_) => "log".to_owned(),
                EventOrSpan::Span(span) => span.name().to_owned(),
            }))
            .build();
        let subscriber = tracing_subscriber::registry()
            .with(SpanNames)
            .with(spans.with_filter(filter_fn(is_traced)))
            .with(log_layer(output));
        Ok(Self {
            file: Some(ending),
            error: fault,
            path: path.display().to_string(),
            _subscriber: tracing::subscriber::set_default(subscriber),
        })
    }

    /// Completes the file after the last traced tick.
    pub fn after_tick(&mut self, tick: u64) {
        if tick >= TRACE_TICKS_MAX {
            self.file = None;
        }
    }

    /// Completes the file, and reports write errors.
    pub fn finish(&mut self) -> Result<(), CliError> {
        self.file = None;
        let error = self.error.get();
        error.map_or(Ok(()), |error| {
            let path = &self.path;
            Err(CliError::new(format!("could not write `{path}`: {error}")))
        })
    }
}

/// What a trace contains: sets, systems, schedules and the log, but not run conditions.
fn is_traced(of: &Metadata) -> bool {
    *of.level() <= LevelFilter::INFO && of.name() != "check_conditions"
}

/// A file that stores its first error, and discards all writes after it.
struct FirstErrorFile {
    file: File,
    error: Arc<OnceLock<io::Error>>,
}

impl Write for FirstErrorFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.error.get().is_none()
            && let Err(error) = self.file.write_all(bytes)
        {
            // The error is not returned, because the trace writer would panic on it.
            let _ = self.error.set(error);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The field `name` of a span, which identifies a system or set.
struct SpanName(String);

/// Stores the names of spans, to be shown in the trace.
struct SpanNames;

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for SpanNames {
    fn on_new_span(&self, attributes: &Attributes, id: &Id, context: Context<S>) {
        let mut name = NameVisitor(None);
        attributes.record(&mut name);
        if let (Some(name), Some(span)) = (name.0, context.span(id)) {
            span.extensions_mut().insert(SpanName(name));
        }
    }
}

struct NameVisitor(Option<String>);

impl Visit for NameVisitor {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "name" {
            self.0 = Some(value.to_owned());
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}
