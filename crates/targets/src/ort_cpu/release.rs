//! Releases of ONNX Runtime. What kernels one has and an older one lacks is said where the kernels are: [`taken_in`](super::taken_in).

use std::fmt;

/// What names of releases begin with.
const RUNTIME: &str = "ONNX Runtime";

/// A release of ONNX Runtime, by its first two numbers: patches of a release bring no kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    major: u64,
    minor: u64,
}

impl Release {
    /// The oldest that was tried: `tools/versions.py` runs what is written for it.
    pub const OLDEST: Release = Release::new(1, 19);

    /// The name of the runtime, as it stands before one of its releases in `onnxruntime-1.28`.
    pub const RUNTIME: &str = "onnxruntime";

    pub(super) const fn new(major: u64, minor: u64) -> Release {
        Release { major, minor }
    }

    /// The release of a version such as `1.28` or `1.28.1`; what follows these numbers does not count.
    ///
    /// # Errors
    /// Why it is none, or none that files are written for.
    pub fn parse(version: &str) -> Result<Release, String> {
        let mut parts = version.split('.').map(|part| {
            let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        });
        let (Some(Some(major)), Some(Some(minor))) = (parts.next(), parts.next()) else {
            return Err(format!("expected a version of ONNX Runtime such as 1.30, found `{version}`"));
        };
        let release = Release { major, minor };
        if release < Release::OLDEST {
            return Err(format!("files are written for ONNX Runtime {} and newer, not for {release}", Release::OLDEST));
        }
        Ok(release)
    }

    /// The release of a runtime as it is asked for: `1.28`, or with its name `onnxruntime-1.28`; `None` for the name alone.
    ///
    /// # Errors
    /// As of [`Release::parse`], and that another name is none.
    pub fn of_runtime(runtime: &str) -> Result<Option<Release>, String> {
        match runtime.strip_prefix(Release::RUNTIME) {
            Some("") => Ok(None),
            Some(rest) => match rest.strip_prefix('-') {
                Some(version) => Release::parse(version).map(Some),
                None => Err(format!("expected {0} or {0}-1.30, found `{runtime}`", Release::RUNTIME)),
            },
            None if !runtime.starts_with(|first: char| first.is_ascii_digit()) => {
                Err(format!("expected {0}, {0}-1.30 or a version such as 1.30, found `{runtime}`", Release::RUNTIME))
            }
            None => Release::parse(runtime).map(Some),
        }
    }

    /// Whether newer releases run something that this one does not.
    pub fn is_older(self) -> bool {
        super::taken_in::newest().is_some_and(|newest| self < newest)
    }

    /// Its name, as a file has it that needs it: `ONNX Runtime 1.30`.
    pub(super) fn named(self) -> String {
        format!("{RUNTIME} {self}")
    }

    /// The release of such a name.
    pub(super) fn of_name(name: &str) -> Option<Release> {
        Release::parse(name.strip_prefix(RUNTIME)?.trim_start()).ok()
    }

    /// The one before it.
    #[must_use]
    pub fn before(self) -> Release {
        Release { minor: self.minor.saturating_sub(1), ..self }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::Release;

    #[test]
    fn a_release_is_the_first_two_numbers_of_a_version() {
        let cases = [
            ("1.28", Ok(Release::new(1, 28))),
            ("1.30.1", Ok(Release::new(1, 30))),
            ("1.33.0.dev20261129", Ok(Release::new(1, 33))),
            ("1.31+cuda", Ok(Release::new(1, 31))),
            ("2.0", Ok(Release::new(2, 0))),
            ("1", Err("expected a version")),
            ("newest", Err("expected a version")),
            ("", Err("expected a version")),
            ("1.18.1", Err("written for ONNX Runtime 1.19 and newer, not for 1.18")),
        ];
        for (version, expected) in cases {
            match (Release::parse(version), expected) {
                (Err(why), Err(part)) => assert!(why.contains(part), "{version}: {why}"),
                (found, expected) => assert_eq!(found.map_err(|_| ""), expected, "{version}"),
            }
        }
        for (runtime, expected) in [
            ("onnxruntime", Ok(None)),
            ("onnxruntime-1.30.1", Ok(Some(Release::new(1, 30)))),
            ("1.28", Ok(Some(Release::new(1, 28)))),
            ("onnxruntime1.30", Err("expected onnxruntime or onnxruntime-1.30")),
            ("onnxruntime-", Err("expected a version")),
            ("onnxruntime-1.18", Err("1.19 and newer")),
        ] {
            match (Release::of_runtime(runtime), expected) {
                (Err(why), Err(part)) => assert!(why.contains(part), "{runtime}: {why}"),
                (found, expected) => assert_eq!(found.map_err(|_| ""), expected, "{runtime}"),
            }
        }
        assert!(Release::new(1, 9) < Release::new(1, 10));
        let release = Release::new(1, 30);
        assert_eq!(Release::of_name(&release.named()), Some(release));
        assert_eq!(Release::of_name("OpenVINO 2026.1"), None);
    }
}
