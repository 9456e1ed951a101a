//! Images that are rolled and taken apart into windows, by Slices, Concats and Transposes or by one list of rows.

use super::volumes::ints;
use super::*;

/// A node: its result, its op, its operands and its attributes.
type Step = (String, &'static str, Vec<String>, Vec<(&'static str, Attr)>);

/// `x` as two images of 6 rows and 4 columns, rolled by `by`, in windows of `window`; or put together of these and rolled.
struct Shift {
    by: [i64; 2],
    window: [i64; 2],
    together: bool,
}

impl Shift {
    fn apart(&self) -> [i64; 6] {
        let [rows, columns] = self.window;
        [2, 6 / rows, rows, 4 / columns, columns, 5]
    }

    /// By ops that move one axis each.
    fn step_by_step(&self) -> Model {
        let mut lines: Vec<Step> = Vec::new();
        let mut x = "x".to_owned();
        let shape = self.apart();
        let together = [0, 1, 3, 2, 4, 5].map(|at: usize| shape[at]);
        let view = |x: &str, lines: &mut Vec<Step>, from: &str, to: &str| {
            lines.push(("a".to_owned(), "Reshape", vec![x.to_owned(), from.to_owned()], vec![]));
            lines.push(("b".to_owned(), "Transpose", vec!["a".to_owned()], perm(&[0, 1, 3, 2, 4, 5])));
            lines.push(("v".to_owned(), "Reshape", vec!["b".to_owned(), to.to_owned()], vec![]));
            "v".to_owned()
        };
        if self.together {
            x = view(&x, &mut lines, "parted", "image");
        }
        for (along, _) in [1, 2].into_iter().zip(self.by).filter(|(_, by)| *by != 0) {
            let [tail, head, y] = ["t", "h", "r"].map(|name| format!("{name}{along}"));
            let [at, axes] = [format!("at{along}"), format!("axes{along}")];
            lines.push((tail.clone(), "Slice", vec![x.clone(), at.clone(), "end".to_owned(), axes.clone()], vec![]));
            lines.push((head.clone(), "Slice", vec![x, "start".to_owned(), at, axes], vec![]));
            lines.push((y.clone(), "Concat", vec![tail, head], axis(along)));
            x = y;
        }
        if !self.together {
            x = view(&x, &mut lines, "apart", "image");
        }
        lines.push(("y".to_owned(), "Relu", vec![x], vec![]));
        let operands: Vec<Vec<&str>> = lines.iter().map(|line| line.2.iter().map(String::as_str).collect()).collect();
        let lines: Vec<Line<'_>> = lines
            .iter()
            .zip(&operands)
            .map(|((y, op, _, told), operands)| (y.as_str(), *op, operands.as_slice(), told.clone()))
            .collect();
        let lists: &[(&str, &[i64], &[i64])] = &[
            ("start", &[1], &[0]),
            ("end", &[1], &[i64::MAX]),
            ("at1", &[1], &[self.by[0]]),
            ("at2", &[1], &[self.by[1]]),
            ("axes1", &[1], &[1]),
            ("axes2", &[1], &[2]),
            ("apart", &[6], &shape),
            ("parted", &[6], &together),
            ("image", &[4], &[2, 6, 4, 5]),
        ];
        ints(model(&lines, &[]), lists)
    }

    /// The row that each row of the result is.
    fn rows(&self) -> Vec<i64> {
        let [n, high, rows, wide, columns, _] = self.apart();
        let mut windows = Vec::new();
        for place in 0..48 {
            let (column, row) = (place % columns, place / columns % rows);
            let (left, above) = (place / (columns * rows) % wide, place / (columns * rows * wide) % high);
            windows.push((place / 24 % n, above * rows + row, left * columns + column));
        }
        let rolled = |(n, row, column): (i64, i64, i64)| [n, (row + self.by[0]) % 6, (column + self.by[1]) % 4];
        if !self.together {
            return windows.into_iter().map(rolled).map(|[n, row, column]| (n * 6 + row) * 4 + column).collect();
        }
        let places = (0..48).map(|place| rolled((place / 24, place / 4 % 6, place % 4)));
        let found = |[n, row, column]: [i64; 3]| windows.iter().position(|at| *at == (n, row, column)).unwrap() as i64;
        places.map(found).collect()
    }
}

fn gathered(rows: &[i64]) -> Model {
    let lines: &[Line<'_>] = &[
        ("f", "Reshape", &["x", "flat"], vec![]),
        ("g", "Gather", &["f", "rows"], axis(0)),
        ("i", "Reshape", &["g", "image"], vec![]),
        ("y", "Relu", &["i"], vec![]),
    ];
    let lists: &[(&str, &[i64], &[i64])] =
        &[("flat", &[2], &[48, 5]), ("rows", &[48], rows), ("image", &[4], &[2, 6, 4, 5])];
    ints(model(lines, &[]), lists)
}

#[test]
fn rows_of_shifted_windows_are_those_of_slices_and_transposes() {
    for together in [false, true] {
        for by in [[1, 2], [2, 1], [5, 3], [0, 1]] {
            let shift = Shift { by, window: [3, 2], together };
            let (a, rows) = (shift.step_by_step(), shift.rows());
            let found = verdict(&a, &gathered(&rows), &Proof::default());
            assert!(found.holds(), "{by:?} {together}: {found}");
            for at in [0, 7, 46] {
                let mut other = rows.clone();
                other.swap(at, at + 1);
                assert!(!holds(&a, &gathered(&other)), "{by:?} {together} {at}");
            }
            let twice = Shift { by, window: [2, 2], together };
            assert!(!holds(&twice.step_by_step(), &gathered(&rows)), "{by:?} {together}");
        }
        let other = Shift { by: [1, 3], window: [3, 2], together };
        let one = Shift { by: [1, 2], window: [3, 2], together };
        assert!(!holds(&one.step_by_step(), &gathered(&other.rows())));
    }
}
