//! Captures warnings that code logs, for tests.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

#[derive(Clone, Default)]
struct LoggedWarnings(Arc<Mutex<Vec<String>>>);

/// The warnings that the code logs on this thread, each as `message; field=value; …`.
pub(crate) fn logged_warnings(work: impl FnOnce()) -> Vec<String> {
    let warnings = LoggedWarnings::default();
    tracing::subscriber::with_default(warnings.clone(), work);
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
