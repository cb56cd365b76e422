//! Axes and their marks.

/// Steps of a number that people count in.
const STEPS: [f64; 3] = [1.0, 2.0, 5.0];

/// Steps of time, seconds.
const TIME_STEPS_S: [f64; 14] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0, 7_200.0, 21_600.0,
];

/// An axis from 0 to where it ends, with the marks on it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    pub end: f64,
    pub marks: Vec<f64>,
}

impl Axis {
    /// One that has room for a number, and about this many marks.
    pub fn up_to(most: f64, marks: u32) -> Self {
        // Of less a tenth may be nothing.
        let most = if most.is_finite() && most > 1e-300 {
            most
        } else {
            1.0
        };
        let rough = most / f64::from(marks.max(1));
        let power = 10f64.powf(rough.log10().floor());
        let steps = STEPS.iter().map(|step| step * power);
        let step = steps
            .into_iter()
            .find(|step| *step >= rough * 0.999)
            .unwrap_or(10.0 * power);
        let count = (most / step - 1e-9).ceil().max(1.0);
        Self {
            end: count * step,
            marks: (0..=count as u32)
                .map(|nth| f64::from(nth) * step)
                .collect(),
        }
    }

    /// One of time that ends where the time does.
    pub fn of_time(seconds: f64, marks: u32) -> Self {
        let end = seconds.max(1e-3);
        let rough = end / f64::from(marks.max(1));
        if rough < TIME_STEPS_S[0] {
            let marks = Self::up_to(end, marks).marks;
            let marks = marks.into_iter().filter(|mark| *mark <= end).collect();
            return Self { end, marks };
        }
        let step = TIME_STEPS_S.into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or_else(|| (rough / 86_400.0).ceil() * 86_400.0);
        Self {
            end,
            marks: (0..=(end / step) as u32)
                .map(|nth| f64::from(nth) * step)
                .collect(),
        }
    }

    /// Where a number is on it: 0 to 1, and no further.
    pub fn position(&self, value: f64) -> f64 {
        (value / self.end).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn axis_has_room_and_few_marks(most in 1e-6f64..1e12, marks in 1u32..8) {
            let axis = Axis::up_to(most, marks);
            prop_assert!(axis.end >= most * 0.999 && axis.end <= most * 10.5);
            prop_assert!(axis.marks.len() <= marks as usize + 2, "{:?}", axis);
            let time = Axis::of_time(most, marks);
            prop_assert!(time.end >= most.min(1e-3) && time.marks.len() <= marks as usize + 2);
            prop_assert!(time.marks.iter().all(|mark| *mark <= time.end * 1.000_001));
        }
    }

    #[test]
    fn axis_marks_are_round_numbers() {
        assert_eq!(Axis::up_to(37.0, 4).marks, [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(Axis::of_time(60.0, 6).marks.len(), 7);
        assert_eq!(Axis::up_to(0.0, 4).end, 1.0);
        assert_eq!(Axis::up_to(f64::NAN, 4).end, 1.0);
    }
}
