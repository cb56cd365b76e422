//! Captures warnings that code logs, for tests.

use std::fmt::{Debug, Write};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Dispatch, Event, Level, Metadata, Subscriber, span};

#[derive(Clone, Default)]
struct LoggedWarnings(Arc<Mutex<Vec<String>>>);

/// While there is a single dispatcher, a log line that another thread reaches first is disabled for all threads.
static SECOND_DISPATCHER: LazyLock<Dispatch> =
    LazyLock::new(|| Dispatch::new(LoggedWarnings::default()));

/// Runs `work`; `subscriber` gets what it logs on this thread.
pub(crate) fn log_to(subscriber: impl Subscriber + Send + Sync + 'static, work: impl FnOnce()) {
    LazyLock::force(&SECOND_DISPATCHER);
    tracing::subscriber::with_default(subscriber, work);
}

/// The warnings that the code logs on this thread, each as `message; field=value; …`.
pub(crate) fn logged_warnings(work: impl FnOnce()) -> Vec<String> {
    let warnings = LoggedWarnings::default();
    log_to(warnings.clone(), work);
    let mut warnings = warnings.0.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::take(&mut *warnings)
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, "; {name}={value:?}"),
        };
    }
}

impl Subscriber for LoggedWarnings {
    fn enabled(&self, metadata: &Metadata) -> bool {
        *metadata.level() == Level::WARN
    }

    fn event(&self, event: &Event) {
        let mut line = Line::default();
        event.record(&mut line);
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(line.message + &line.fields);
    }

    fn new_span(&self, _: &span::Attributes) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
