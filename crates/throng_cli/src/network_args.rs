//! Flags of simulated network conditions, shared by several subcommands.

use super::whole_number;
use throng_net::conditioner::{LossModel, NetworkConditioner};

/// A simulated bad network, the same in each direction.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct NetworkArgs {
    /// Share of packets to lose in each direction: 10%
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0%")]
    loss: f64,
    /// Lose packets in bursts of this mean length, instead of one by one
    #[arg(long, value_name = "MS", default_value_t = 0)]
    bursts_ms: u32,
    /// Minimum delay in one direction
    #[arg(long, value_name = "MS", default_value_t = 0)]
    delay_ms: u32,
    /// Maximum extra delay, drawn for each packet
    #[arg(long, value_name = "MS", default_value_t = 0)]
    jitter_ms: u32,
    /// Seed of the simulated losses and delays
    #[arg(long, value_name = "N", value_parser = whole_number, default_value_t = 1)]
    pub seed: u64,
}

impl NetworkArgs {
    /// The conditions; none if they have no effect.
    pub fn conditioner(self) -> Option<NetworkConditioner> {
        if self.loss == 0.0 && self.delay_ms == 0 && self.jitter_ms == 0 {
            return None;
        }
        let loss = match self.bursts_ms {
            0 => LossModel::Independent(self.loss),
            mean_ms => LossModel::Bursts {
                share: self.loss,
                mean_us: f64::from(mean_ms) * 1e3,
            },
        };
        Some(NetworkConditioner {
            delay_us: u64::from(self.delay_ms) * 1_000,
            jitter_us: u64::from(self.jitter_ms) * 1_000,
            ..NetworkConditioner::with_loss(loss)
        })
    }
}

fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').map_or_else(
        || text.parse::<f64>().ok(),
        |percent| percent.parse::<f64>().ok().map(|percent| percent / 100.0),
    );
    number
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "expected a share from 0 to 1, such as 10% or 0.1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_is_a_percentage_or_a_number() {
        assert_eq!((share("10%"), share("0.1")), (Ok(0.1), Ok(0.1)));
        for wrong in ["", "%", "101%", "-1%", "2", "nan", "ten"] {
            assert!(share(wrong).unwrap_err().contains("10%"), "{wrong}");
        }
    }
}
