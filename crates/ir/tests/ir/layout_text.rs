//! Names, general form and aliases of layouts.

use crate::layout_common::{Maps, coordinates, shaped_layout};
use proptest::prelude::*;
use relayout_ir::layout::{Layout, LayoutNames};

fn parse(text: &str) -> Layout {
    text.parse().unwrap_or_else(|e| panic!("{e}"))
}

/// (text, general form with the letters of its family).
const FORMS: &[(&str, &str)] = &[
    ("NCHW", "N C H W"),
    ("NHWC", "N H W C"),
    ("CHWN", "C H W N"),
    ("NCHW4c", "N C/4 H W C%4"),
    ("NCHW8c", "N C/8 H W C%8"),
    ("NCHW16c", "N C/16 H W C%16"),
    ("NCHW32c", "N C/32 H W C%32"),
    ("NCHW64c", "N C/64 H W C%64"),
    ("CHWN4", "C/4 H W N C%4"),
    ("NHCWc4", "N H C/4 W C%4"),
    ("NCDHW", "N C D H W"),
    ("NDHWC", "N D H W C"),
    ("NCDHW16c", "N C/16 D H W C%16"),
];

#[test]
fn each_name_is_its_general_form_and_prints_as_itself() {
    for (name, general) in FORMS {
        let layout = parse(name);
        assert_eq!(layout, parse(general), "{name}");
        assert_eq!(layout.to_string(), *name);
        assert_eq!(layout.general_form(&LayoutNames::default_for(layout.rank())), *general);
    }
}

#[test]
fn a_scalar_has_a_general_form_that_reads_back() {
    let scalar = Layout::row_major(0);
    let general = scalar.general_form(&LayoutNames::default_for(0));
    assert_eq!(general, "scalar");
    assert_eq!(parse(&general), scalar);
}

#[test]
fn weights_matrices_and_fields_print_with_their_own_letters() {
    let cases: &[(&str, LayoutNames, &str, &str)] = &[
        ("OIHW", LayoutNames::weights(4), "OIHW", "NCHW"),
        ("OHWI", LayoutNames::weights(4), "OHWI", "NHWC"),
        ("HWIO", LayoutNames::weights(4), "HWIO", "HWCN"),
        ("O/16 I/16 H W I%16 O%16", LayoutNames::weights(4), "OIHW16i16o", "NCHW16c16n"),
        ("OIHW16o", LayoutNames::weights(4), "OIHW16o", "NCHW16n"),
        ("MN", LayoutNames::matrix(2), "MN", "ab"),
        ("NM", LayoutNames::matrix(2), "NM", "ba"),
        ("NWC", LayoutNames::features(3), "NWC", "acb"),
        ("NCW8c", LayoutNames::features(3), "NCW8c", "a b/8 c b%8"),
        ("M/8 N/8 M%8 N%8", LayoutNames::matrix(2), "M/8 N/8 M%8 N%8", "a/8 b/8 a%8 b%8"),
    ];
    for (text, names, named, default) in cases {
        let layout = parse(text);
        assert_eq!(layout.display(names).to_string(), *named);
        assert_eq!(layout.to_string(), *default);
        assert_eq!(parse(default), layout);
        assert_eq!(Layout::parse_with(named, names), Ok(layout));
    }
}

#[test]
fn fields_of_structs_are_axes_like_others() {
    let xf = LayoutNames::custom("XF").unwrap();
    for (text, shown) in [("X F", "XF"), ("F X", "FX"), ("X/8 F X%8", "X/8 F X%8")] {
        assert_eq!(parse(text).display(&xf).to_string(), shown);
    }
}

#[test]
fn aliases_of_other_projects_are_read() {
    let cases = [
        ("nhwc", "NHWC"),
        ("nchw", "NCHW"),
        ("abcd", "NCHW"),
        ("acdb", "NHWC"),
        ("aBcd16b", "NCHW16c"),
        ("nChw16c", "NCHW16c"),
        ("nChw8c", "NCHW8c"),
        ("ABcd16b16a", "OIHW16i16o"),
        ("OIhw16i16o", "OIHW16i16o"),
        ("Oihw16o", "OIHW16o"),
        ("ABcd4b16a4b", "O/16 I/16 H W I/4%4 O%16 I%4"),
        ("OIhw4i16o4i", "O/16 I/16 H W I/4%4 O%16 I%4"),
        ("NCHW2n4c", "N/2 C/4 H W N%2 C%4"),
        ("N4cHWC", "N C%4 H W C/4"),
        ("NCHW44", "NCHW4c"),
        ("NCHW88", "NCHW8c"),
        ("NCHW4", "NCHW4c"),
        ("NCHW32", "NCHW32c"),
        ("NCHW64", "NCHW64c"),
        ("NHCW4c", "NHCWc4"),
        ("CHWN4c", "CHWN4"),
        ("aBcde16b", "NCDHW16c"),
        ("nwc", "acb"),
        ("acb", "NWC"),
        ("ba", "NM"),
    ];
    for (alias, ours) in cases {
        assert_eq!(parse(alias), parse(ours), "{alias}");
    }
}

#[test]
fn three_levels_and_segments_have_a_general_form() {
    let three = parse("C/64 C/16%4 C%16");
    assert_eq!(three.to_string(), "a/64 a/16%4 a%16");
    let segments = parse("N C[58:64,58:64] H W");
    assert_eq!(segments.to_string(), "N C[58:64,58:64] H W");
    let blocked = parse("N C[58:64*4]/64 H W C%64");
    assert_eq!(blocked.to_string(), "N C[58:64*4]/64 H W C%64");
    assert_eq!(blocked.slot_map(1).map(<[_]>::len), Some(4));
    assert_eq!(parse("N C[20:32,12:16]/16 H W C%16").to_string(), "N C[20:32,12:16]/16 H W C%16");
    assert_eq!(parse("scalar"), Layout::row_major(0));
}

#[test]
fn a_slot_map_that_says_nothing_is_dropped() {
    assert_eq!(parse("N C[20:32]/16 H W C%16"), parse("NCHW16c"));
    assert_eq!(parse("N C[4:4,6:6] H W"), parse("NCHW"));
    assert_eq!(parse("N C[4:4,6:8] H W"), parse("N C[10:12] H W"));
}

#[test]
fn wrong_text_says_what_would_be_right() {
    let cases = [
        ("", "is empty"),
        ("NCQ", "none of a b c"),
        ("NCHW16", ""),
        ("NHW16", "block without an axis"),
        ("N C/16 H W", "do not spell it"),
        ("N C H W C%16", "do not spell it"),
        ("N C/16 H W C%8", "do not spell it"),
        ("N C C H W", "do not spell it"),
        ("N C/0 H W", "is not a factor"),
        ("N C%16 H W", "no outermost digit"),
        ("N C[5:4] H W", "length <= slots"),
        ("N C[5:6]/4 H W C%4", "not a multiple"),
        ("N C[5 H W", "is not a factor"),
        ("NC!W", "`!` is not an axis"),
        ("NCHW99999999999999999999c", "too large"),
        ("N C/1152921504606846976 H W C%1152921504606846976", "2^59"),
    ];
    for (text, why) in cases {
        match text.parse::<Layout>() {
            Ok(layout) => assert_eq!(text, "NCHW16", "{layout} was read"),
            Err(error) => assert!(error.to_string().contains(why), "{text}: {error}"),
        }
    }
}

proptest! {
    #[test]
    fn what_cute_writes_is_read_again((shape, layout) in shaped_layout(Maps::Any)) {
        let bound = layout.bind(&shape).unwrap();
        match bound.to_cute() {
            None => prop_assert!(bound.is_padded()),
            Some(text) => {
                let (again, read) = Layout::from_cute(&text).unwrap();
                prop_assert_eq!(&read, &shape, "{}", &text);
                let other = again.bind(&shape).unwrap();
                for at in coordinates(&shape) {
                    prop_assert_eq!(other.offset(&at), bound.offset(&at), "{} at {:?}", &text, at);
                }
            }
        }
    }

    #[test]
    fn bits_of_an_offset_are_bits_of_indices((shape, layout) in shaped_layout(Maps::Any)) {
        let bound = layout.bind(&shape).unwrap();
        let Some(bits) = bound.to_bits() else { return Ok(()) };
        for at in coordinates(&shape) {
            let offset: u64 = bits.iter().enumerate().map(|(to, &(axis, bit))| (at[axis] >> bit & 1) << to).sum();
            prop_assert_eq!(Some(offset), bound.offset(&at), "{}", &layout);
        }
    }
}

#[test]
fn what_of_cute_is_no_layout_is_refused_with_a_reason() {
    let cases = [
        ("(4,2)", "has no `:`"),
        ("(4,2):(2,0)", "stride 0"),
        ("(4,2):(1,8)", "stride 8 around 4 elements"),
        ("(4,2):(1,1)", "stride 1 around 2 elements"),
        ("(4,2):(1)", "other strides"),
        ("(4,(2:(1,4)", "parentheses"),
        ("(4,x):(1,4)", "`x`"),
        ("(0,2):(2,1)", "extent of 0"),
    ];
    for (text, why) in cases {
        let said = Layout::from_cute(text).unwrap_err().to_string();
        assert!(said.contains(why), "{text}: {said}");
    }
    let read = |text: &str| Layout::from_cute(text).map(|(layout, shape)| (layout.to_string(), shape)).unwrap();
    assert_eq!(read("8:1"), ("a".to_owned(), vec![8]));
    assert_eq!(read("((2,2),3):((1,6),2)"), ("a/2 b a%2".to_owned(), vec![4, 3]));
}
