//! Transpose and reshape of layouts: figures, near misses, symbolic extents.

use relayout_ir::dim::Dim;
use relayout_ir::layout::Layout;

fn parse(text: &str) -> Layout {
    text.parse().unwrap_or_else(|e| panic!("{e}"))
}

fn dims(text: &str) -> Vec<Dim> {
    text.split(',').filter(|t| !t.is_empty()).map(|t| t.parse().unwrap_or_else(|e| panic!("{e}"))).collect()
}

/// (layout, shape before, shape after, layout after).
const FREE: &[(&str, &str, &str, &str)] = &[
    ("NCHW", "2,64,3,3", "2,576", "ab"),
    ("NHWC", "2,64,3,3", "2,576", "a b%9 b/9"),
    ("NHWC", "2,64,3,3", "2,64,9", "a c b"),
    ("NCHW16c", "2,64,3,3", "2,64,9", "a b/16 c b%16"),
    ("NCHW16c", "2,64,3,3", "2,4,16,9", "N C W H"),
    ("NCHW16c", "2,64,3,3", "2,8,8,9", "N C/2 W C%2 H"),
    ("NHWC", "N,C,H,W", "N,C,H*W", "acb"),
    ("NHWC", "N,64,H,W", "N,64,1,H*W", "NHWC"),
    ("acb", "B,S,64", "B,S,4,16", "N H W C"),
    ("abc", "B,S,64", "B*S,64", "ab"),
    ("ab", "B*S,64", "B,S,64", "abc"),
    ("NHWC", "1,64,1,1", "1,64", "ab"),
    ("NHWC", "N,20,1,1", "N,20", "ab"),
    ("NCHW16c", "2,20,1,1", "2,20", "a b[20:32]"),
    ("NCHW16c", "2,20,3,3", "2,20,9", "a b/16 c b%16"),
    ("NCHW16c", "2,20,3,3", "2,5,4,9", "N C/4 W C%4 H"),
    ("N C[48:64] H W", "2,48,3,3", "2,3,16,9", "N C[3:4] H W"),
    ("N C[58:64,58:64] H W", "2,116,3,3", "2,2,58,9", "N C H[58:64] W"),
    ("N H[58:64] W C", "2,2,58,9", "2,116,9", ""),
    ("N C/16 H W C%16", "N,C,H,W", "N,C,H*W", "a b/16 c b%16"),
    ("N C%4 C/4 H W", "2,8,3,3", "2,2,4,9", "N H C W"),
];

#[test]
fn reshapes_along_boundaries_are_spelled() {
    for (layout, from, to, expected) in FREE {
        let got = parse(layout).reshape(&dims(from), &dims(to));
        let got = got.unwrap_or_else(|e| panic!("{layout} {from} -> {to}: {e}"));
        if !expected.is_empty() {
            assert_eq!(got, parse(expected), "{layout} {from} -> {to}");
        }
    }
}
