//! Tables of measured costs: what those of all targets share.

pub(crate) mod file;
pub(crate) mod grid;

/// A table that can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CostsError {
    /// The text is not a table.
    #[error("table of costs `{name}`: {why}; `relayout calibrate` writes one that can be read")]
    Malformed {
        /// File or name.
        name: String,
        /// What is wrong, and where.
        why: String,
    },
    /// The table was written by another version, whose grids are others.
    #[error(
        "table of costs `{name}` has format {format}, and this version reads format {reads}; measure again with `relayout calibrate`"
    )]
    OtherFormat {
        /// File or name.
        name: String,
        /// What it says.
        format: u64,
        /// What this version reads.
        reads: u64,
    },
    /// The table has the costs of another target.
    #[error("table of costs `{name}` is about target `{target}`, not `{wanted}`")]
    OtherTarget {
        /// File or name.
        name: String,
        /// What it says.
        target: String,
        /// The target that it was given to.
        wanted: String,
    },
}

/// How many points a calibration measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Points {
    /// As many as a table for a device needs.
    Whole,
    /// Few and small ones, to try the way of a table on a CPU.
    Few,
}

/// One grid as it was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// Name of the grid.
    pub name: String,
    /// Names of its axes and their points.
    pub axes: Vec<(String, Vec<u64>)>,
    /// Nanoseconds of the op at each point, the last axis fastest.
    pub ns: Vec<u64>,
}

/// Every point of the product of some axes, the last fastest.
#[must_use]
pub fn points_of(axes: &[Vec<u64>]) -> Vec<Vec<u64>> {
    axes.iter().fold(vec![Vec::new()], |points, axis| {
        let extended = |point: &Vec<u64>| {
            let point = point.clone();
            axis.iter().map(move |&x| point.iter().copied().chain([x]).collect::<Vec<u64>>())
        };
        points.iter().flat_map(extended).collect()
    })
}
