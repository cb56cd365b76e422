//! What goes wrong, and how often; and how often players log out.

/// Probabilities of faults: per step of 10 ms and node for the first group, per message or request for the second.
#[derive(Clone, Copy, Debug)]
pub struct FaultRates {
    pub kill: f64,
    /// Per step: a player logs out. Its client logs in again within half a second.
    pub log_out: f64,
    /// Per step: a node begins or ends to drain.
    pub drain: f64,
    pub cut_from_store: f64,
    pub cut_from_bus: f64,
    /// Per step: the store is away for a while.
    pub store_away: f64,
    /// A request is executed, and its reply is lost.
    pub reply_lost: f64,
    /// A request is executed up to three seconds late.
    pub request_late: f64,
    /// A request never arrives.
    pub request_lost: f64,
    pub message_lost: f64,
    pub message_repeated: f64,
    pub message_late: f64,
}

impl FaultRates {
    pub const NONE: Self = Self {
        kill: 0.0,
        log_out: 0.0,
        drain: 0.0,
        cut_from_store: 0.0,
        cut_from_bus: 0.0,
        store_away: 0.0,
        reply_lost: 0.0,
        request_late: 0.0,
        request_lost: 0.0,
        message_lost: 0.0,
        message_repeated: 0.0,
        message_late: 0.0,
    };

    pub const ALL: Self = Self {
        kill: 0.000_5,
        log_out: 0.02,
        drain: 0.004,
        cut_from_store: 0.000_5,
        cut_from_bus: 0.001,
        store_away: 0.000_2,
        reply_lost: 0.02,
        request_late: 0.02,
        request_lost: 0.02,
        message_lost: 0.1,
        message_repeated: 0.1,
        message_late: 0.1,
    };

    /// One fault each, more often than among the others; the last ones are several that only together do harm.
    pub const SINGLE: [(&str, Self); 11] = [
        (
            "kill",
            Self {
                kill: 0.003,
                ..Self::NONE
            },
        ),
        (
            "log out",
            Self {
                log_out: 0.1,
                ..Self::NONE
            },
        ),
        (
            "drain",
            Self {
                drain: 0.02,
                ..Self::NONE
            },
        ),
        (
            "cut from the store",
            Self {
                cut_from_store: 0.003,
                ..Self::NONE
            },
        ),
        (
            "cut from the bus",
            Self {
                cut_from_bus: 0.01,
                ..Self::NONE
            },
        ),
        (
            "store away",
            Self {
                store_away: 0.002,
                ..Self::NONE
            },
        ),
        (
            "reply lost",
            Self {
                reply_lost: 0.2,
                ..Self::NONE
            },
        ),
        (
            "request late",
            Self {
                request_late: 0.2,
                ..Self::NONE
            },
        ),
        (
            "messages",
            Self {
                message_lost: 0.5,
                message_repeated: 0.3,
                message_late: 0.3,
                ..Self::NONE
            },
        ),
        (
            "cut from store and bus, and requests late",
            Self {
                cut_from_store: 0.005,
                cut_from_bus: 0.02,
                request_late: 0.1,
                message_late: 0.2,
                ..Self::NONE
            },
        ),
        (
            "drain, and requests late",
            Self {
                drain: 0.2,
                request_late: 0.2,
                ..Self::NONE
            },
        ),
    ];
}
