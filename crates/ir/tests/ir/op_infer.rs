//! Types and contents of results, one line per case: `op opset | attributes | operands | results`.
//!
//! Results are the types that inference finds, then the contents of the first after `=`. Anonymous dims are numbered from 1
//! in each case. A line whose results start with `!` is a bad model: the text is part of the problem reported.

use crate::op_common::inferred;

fn check(table: &str) {
    let mut wrong = Vec::new();
    for line in table.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [op, attrs, operands, expected] = fields[..] else { panic!("`{line}` has not four fields") };
        let (op, opset) = op.split_once(' ').unwrap();
        let results = expected.split(" = ").next().unwrap().split_whitespace().count().max(1);
        let results = if expected.starts_with('!') { 1 } else { results };
        let (graph, id, problems) = inferred(op, opset.parse().unwrap(), attrs, operands, results);
        let outputs: Vec<_> = graph.node(id).outputs.iter().flatten().map(|&v| graph.value(v)).collect();
        let mut found: String = outputs.iter().map(|v| v.ty.to_string()).collect::<Vec<_>>().join(" ");
        for contents in outputs.iter().filter_map(|v| v.contents.as_ref()) {
            let contents: Vec<String> = contents.iter().map(ToString::to_string).collect();
            found = format!("{found} = [{}]", contents.join(","));
        }
        let right = match expected.strip_prefix('!') {
            Some(part) => problems.len() == 1 && problems[0].contains(part),
            None => problems.is_empty() && found == expected,
        };
        if !right {
            wrong.push(format!("{line}\n    found {found} {problems:?}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn windows_run_over_padded_dilated_and_symbolic_axes() {
    check(
        "
        Conv 11 | strides=[2,2] pads=[3,3,3,3] | f32[1,3,224,224] f32[64,3,7,7] | f32[1,64,112,112]
        Conv 11 | group=2 | f32[N,4,H,W] f32[6,2,3,3] f32[6] | f32[N,6,H-2,W-2]
        Conv 11 | strides=[2] pads=[1,1] | f32[1,4,L] f32[8,4,3] | f32[1,8,(L+1)//2]
        Conv 11 | dilations=[2,2] | f32[1,1,9,9] f32[1,1,3,3] | f32[1,1,5,5]
        Conv 11 | auto_pad=SAME_UPPER strides=[2,2] | f32[1,3,225,H] f32[8,3,3,3] | f32[1,8,113,(H+1)//2]
        Conv 11 | auto_pad=VALID pads=[1,1] | f32[1,1,9] f32[1,1,3] | f32[1,1,7]
        Conv 11 | | f32[*] f32[8,3,3,3] | f32[?1,8,?3-2,?4-2]
        Conv 11 | | f32[1,3,H,8] f32[8,3,K,K] | f32[1,8,?1,?2]
        Conv 11 | | f32[1,4,8,8] f32[8,3,3,3] | !data has 4 channels
        Conv 11 | | f32[1,3,2,2] f32[8,3,3,3] | !does not fit
        Conv 11 | strides=[0,1] | f32[1,3,8,8] f32[8,3,3,3] | !is 0
        Conv 11 | pads=[1] | f32[1,3,8,8] f32[8,3,3,3] | !`pads` has 1 entries, needs 4
        Conv 11 | dilations=[9223372036854775807,1] | f32[1,3,8,8] f32[8,3,3,3] | f32[1,8,?1,6]
        ConvTranspose 11 | strides=[2,2] pads=[1,1,1,1] output_padding=[1,1] | f32[1,8,7,H] f32[8,4,3,3] | f32[1,4,14,2*H]
        ConvTranspose 11 | strides=[2] group=2 | f32[1,8,5] f32[8,4,2] | f32[1,8,10]
        ConvTranspose 11 | output_shape=[9,9] | f32[1,8,7,7] f32[8,4,3,3] | f32[1,4,9,9]
        ConvTranspose 11 | auto_pad=SAME_LOWER strides=[3] | f32[1,8,L] f32[8,4,5] | f32[1,4,3*L]
        MaxPool 12 | kernel_shape=[3,3] strides=[2,2] ceil_mode=1 | f32[1,8,112,H] | f32[1,8,56,H//2] i64[1,8,56,H//2]
        MaxPool 12 | kernel_shape=[2,2] strides=[2,2] ceil_mode=1 pads=[0,0,1,1] | f32[1,8,7,H] | f32[1,8,4,?1]
        AveragePool 19 | kernel_shape=[3] dilations=[2] | f32[1,8,10] | f32[1,8,6]
        AveragePool 11 | | f32[1,8,10] | !lacks `kernel_shape`
        LpPool 11 | kernel_shape=[2,2] | f32[1,8,4] | !has rank 3, needs 4
        GlobalAveragePool 1 | | f32[N,C,H,W] | f32[N,C,1,1]
        MaxUnpool 11 | kernel_shape=[2,2] strides=[2,2] | f32[1,1,2,2] i64[1,1,2,2] | f32[1,1,4,4]
        QLinearConv 10 | | u8[1,3,8,8] f32[] u8[] i8[4,3,3,3] f32[4] i8[4] f32[] u8[] | u8[1,4,6,6]
        ConvInteger 10 | | u8[1,3,8,8] u8[4,3,3,3] | i32[1,4,6,6]
        ",
    );
}

#[test]
fn normalizations_keep_the_shape_and_know_their_statistics() {
    check(
        "
        BatchNormalization 9 | | f32[N,8,H,W] f32[8] f32[8] f32[8] f32[8] | f32[N,8,H,W]
        BatchNormalization 9 | | f32[N,8,H,W] f32[9] f32[8] f32[8] f32[8] | !channels and scales differ
        LayerNormalization 17 | axis=-2 | f16[N,8,H,W] f16[H,W] | f16[N,8,H,W] f32[N,8,1,1] f32[N,8,1,1]
        LayerNormalization 17 | axis=4 | f16[N,8,H,W] f16[H,W] | !axis 4 is out of range for rank 4
        InstanceNormalization 6 | | f32[N,8,H] f32[8] f32[8] | f32[N,8,H]
        Softmax 13 | axis=-1 | f32[N,8] | f32[N,8]
        ",
    );
}

#[test]
fn elementwise_ops_broadcast_and_keep_element_types() {
    check(
        "
        Relu 14 | | f32[N,8] | f32[N,8]
        Add 14 | | f32[N,1,8] f32[5,1] | f32[N,5,8]
        Add 14 | | f32[N,8] f32[M,8] | f32[?1,8]
        Add 14 | | f32[N,8] f32[4,8] | f32[4,8]
        Add 14 | | f32[0] f32[N] | f32[0]
        Add 14 | | f32[3] f32[4] | !extents 3 and 4 do not broadcast
        Add 14 | | f32[3] f16[3] | !unequal element types
        Add 14 | | f32[*] f32[3] | f32[*]
        Sum 13 | | f32[8] f32[4,8] f32[N,1,1] | f32[N,4,8]
        Equal 13 | | i64[N] i64[] | bool[N]
        IsNaN 13 | | f32[N] | bool[N]
        Where 16 | | bool[N,1] f32[1,8] f32[] | f32[N,8]
        Pow 15 | | f32[N] i64[] | f32[N]
        PRelu 16 | | f32[N,8] f32[8] | f32[N,8]
        Cast 13 | to=10 | f32[N,8] | f16[N,8]
        Cast 5 | to=FLOAT16 | f32[N,8] | f16[N,8]
        Cast 13 | to=99 | f32[N,8] | !is not an element type
        CastLike 15 | | f32[N] i8[1] | i8[N]
        Clip 13 | | f32[N] f32[] - | f32[N]
        Dropout 13 | | f32[N,8] | f32[N,8] bool[N,8]
        Dropout 7 | | f32[N,8] | f32[N,8] f32[N,8]
        Add 6 | broadcast=1 axis=1 | f32[N,8,4] f32[8] | f32[N,8,4]
        ",
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn shape_arithmetic_is_followed() {
    check(
        "
        Shape 13 | | f32[N,8,H] | i64[3] = [N,8,H]
        Shape 15 | start=-2 end=9 | f32[N,8,H] | i64[2] = [8,H]
        Shape 15 | start=2 end=1 | f32[N,8,H] | i64[0] = []
        Shape 13 | | f32[*] | i64[?1]
        Size 13 | | f32[N,8,H] | i64[] = [8*H*N]
        Gather 13 | | ~[N,8,H] =-1 | i64[] = [H]
        Gather 13 | | ~[N,8,H] =[0,1] | i64[2] = [N,8]
        Gather 13 | | ~[N,8] =2 | !index 2 is out of range
        Concat 13 | axis=0 | ~[N] =[-1,4] | i64[3] = [N,-1,4]
        Slice 13 | | ~[N,8,H,W] =[2] =[9223372036854775807] | i64[2] = [H,W]
        Slice 13 | | ~[N,8,H,W] =[-1] =[-9223372036854775807] =[0] =[-2] | i64[2] = [W,8]
        Slice 9 | starts=[1] ends=[2] | ~[N,8] | i64[1] = [8]
        Unsqueeze 13 | | ~N =[0] | i64[1] = [N]
        Squeeze 13 | | ~[N] =[0] | i64[] = [N]
        Squeeze 13 | | ~[N] | i64[] = [N]
        Reshape 14 | | ~N =[1] | i64[1] = [N]
        Identity 13 | | ~[N,8] | i64[2] = [N,8]
        Cast 13 | to=6 | ~[N,8] | i32[2] = [N,8]
        Cast 13 | to=6 | =[3000000000] | i32[1]
        Cast 13 | to=7 | f=[2.7,-2.7] | i64[2] = [2,-2]
        Cast 13 | to=1 | ~[N] | f32[1] = [N]
        Cast 13 | to=10 | ~[N] | f16[1]
        Cast 13 | to=1 | =[16777217] | f32[1]
        Add 14 | | ~[H,W] =[1,2] | i64[2] = [H+1,W+2]
        Sub 14 | | ~H =3 | i64[] = [H-3]
        Mul 14 | | ~[H,W] =[2] | i64[2] = [2*H,2*W]
        Div 14 | | ~[H,7,-7] =2 | i64[3] = [H//2,3,-3]
        Div 14 | | ~[H-1,H] =[2] | i64[2] = [~1,H//2]
        Div 14 | | =[1] =[0] | i64[1] = [~1]
        Sub 14 | | ~[H-~7] ~[H] | i64[1] = [-~7]
        Add 14 | | ~[H-~7] ~[~7] | i64[1] = [H]
        Reshape 14 | | [6,4] ~[~7,4] | ?[?1,4]
        Reshape 14 | | [6,4] ~[~7,-1] | ?[?2,?1]
        Slice 13 | | [N] =[0] ~[~7] =[0] | ?[?1]
        ConstantOfShape 9 | | ~[~7,H] | f32[?1,H]
        Mul 14 | | =[9223372036854775807] =[2] | i64[1]
        Mod 13 | | =[-7,7] =[3] | i64[2] = [2,1]
        Mod 13 | fmod=1 | =[-7,7] =[3] | i64[2] = [-1,1]
        Mod 13 | | ~[4*H] =[4] | i64[1] = [0]
        Mod 13 | | ~[H+1] =[4] | i64[1] = [H-4*((H+1)//4)+1]
        Mod 13 | | ~[H-1] =[4] | i64[1]
        Div 14 | | ~[4-H+3*(H//3)] =[3] | i64[1] = [-H+H//3+(2*H+1)//3+1]
        Max 13 | | ~[H,3] ~[H-1,5] | i64[2] = [H,5]
        Min 13 | | ~[H] =[-1] | i64[1] = [-1]
        Min 13 | | ~[H] =[512] | i64[1]
        Equal 13 | | ~[N,-1,4] =[-1] | bool[3] = [0,1,0]
        Equal 13 | | ~[N] =[4] | bool[1] = [~1]
        Where 16 | | =[0,1] =[1] ~[N,-1] | i64[2] = [N,1]
        Greater 13 | | ~[H+1] ~[H] | bool[1] = [1]
        ReduceProd 13 | keepdims=0 | ~[H,W,2] | i64[] = [2*H*W]
        ReduceSum 13 | | ~[H,W] =[0] | i64[1] = [H+W]
        Range 11 | | =0 =7 =2 | i64[4] = [0,2,4,6]
        Range 11 | | =3 =0 =-1 | i64[3] = [3,2,1]
        Range 11 | | =0 ~N =1 | i64[N]
        Range 11 | | ~M ~N =1 | i64[?1]
        Range 11 | | f=0.0 f=1.0 f=0.25 | f32[4]
        Range 11 | | f=0.0 f=7.0 f=2.0 | f32[4] = [0,2,4,6]
        Range 11 | | =0 =1 =0 | !the step is 0
        ConstantOfShape 9 | | ~[N,4] | f32[N,4]
        ConstantOfShape 9 | | =[-1] | !is negative
        Expand 13 | | =[7] =[3] | i64[3] = [7,7,7]
        Tile 13 | | ~[N,2] =[2] | i64[4] = [N,2,N,2]
        NonZero 13 | | f32[N,4] | i64[2,?1]
        Reshape 13 | | ~[N,2,3,4] =[-1,2] | i64[2,2] = [N,2,3,4]
        Transpose 13 | | =2x3[1,2,3,4,5,6] | i64[3,2] = [1,4,2,5,3,6]
        Transpose 13 | perm=[1,2,0] | =2x1x2[1,2,3,4] | i64[1,2,2] = [1,3,2,4]
        Slice 13 | | =2x2[1,2,3,4] =[-1] =[-9] =[0] =[-1] | i64[2,2] = [3,4,1,2]
        Gather 13 | axis=1 | =2x2[1,2,3,4] =[1,1] | i64[2,2] = [2,2,4,4]
        Concat 13 | axis=1 | =2x1[1,2] =2x2[3,4,5,6] | i64[2,3] = [1,3,4,2,5,6]
        ",
    );
}

#[test]
fn views_compute_the_extents_that_are_left_out() {
    check(
        "
        Reshape 14 | | f32[N,3,4] =[0,-1] | f32[N,12]
        Reshape 14 | | f32[N,3,H,W] ~[N,3,-1] | f32[N,3,H*W]
        Reshape 14 | | f32[N,3,H,W] =[-1,3] | f32[H*N*W,3]
        Reshape 14 | | f32[N,6] =[-1,4] | f32[?1,4]
        Reshape 14 | | f32[2,6] =[-1,5] | !do not fill
        Reshape 14 | | f32[2,6] =[3,5] | !12 elements do not fill a shape of 15
        Reshape 14 | | f32[2,6] =[-1,-1] | !more than one extent is -1
        Reshape 14 | | f32[2,6] =[-2] | !is negative
        Reshape 14 | | f32[2] =[1,0] | !copies from rank 1
        Reshape 14 | allowzero=1 | f32[0,6] =[3,0] | f32[3,0]
        Reshape 14 | | f32[0,6] =[0,-1] | f32[0,?1]
        Reshape 14 | | f32[N,6] i64[3] | f32[?1,?2,?3]
        Reshape 14 | | f32[N,6] i64[K] | f32[*]
        Reshape 14 | | f32[9223372036854775807,9223372036854775807] =[-1] | f32[?1]
        Reshape 1 | shape=[0,-1] | f32[N,3,4] | f32[N,12]
        Flatten 13 | | f32[N,3,4] | f32[N,12]
        Flatten 13 | axis=0 | f32[N,3,4] | f32[1,12*N]
        Flatten 13 | axis=3 | f32[N,3,4] | f32[12*N,1]
        Flatten 13 | axis=4 | f32[N,3,4] | !out of range
        Squeeze 11 | axes=[1,-1] | f32[N,1,4,1] | f32[N,4]
        Squeeze 13 | | f32[2,1,4] =[0] | !axis 0 has extent 2, not 1
        Squeeze 13 | | f32[N,1,4] | f32[*]
        Squeeze 13 | | f32[2,1,4] =[] | f32[*]
        Squeeze 13 | | f32[2,3] =[] | f32[2,3]
        Squeeze 13 | | f32[2,1,4] i64[1] | f32[*]
        Unsqueeze 11 | axes=[0,-1] | f32[N,4] | f32[1,N,4,1]
        Unsqueeze 13 | | f32[N,4] =[1,1] | !axis 1 occurs twice
        Unsqueeze 13 | | f32[N,4] =[5] | !out of range
        Transpose 13 | perm=[0,2,1] | f32[N,3,4] | f32[N,4,3]
        Transpose 13 | | f32[N,3,4] | f32[4,3,N]
        Transpose 13 | perm=[0,0,1] | f32[N,3,4] | !is not a permutation
        Transpose 13 | perm=[1,0] | f32[*] | f32[?1,?2]
        ",
    );
}

#[test]
fn cutting_and_joining_add_up() {
    check(
        "
        Concat 13 | axis=1 | f32[N,3,H] f32[N,C,H] | f32[N,C+3,H]
        Concat 13 | axis=-1 | f32[N,3] f32[2,4] | f32[2,7]
        Concat 13 | axis=0 | f32[1,3] f32[1,4] | !differ: 3 and 4
        Concat 13 | axis=0 | f32[1,3] f32[3] | !has rank 1, needs 2
        Concat 13 | axis=2 | f32[1,3] f32[1,3] | !axis 2 is out of range
        Concat 1 | | f32[1,3] f32[1,3] | f32[1,6]
        Split 11 | axis=1 split=[1,2] | f32[N,3] | f32[N,1] f32[N,2]
        Split 13 | axis=-1 | f32[N,2*C] | f32[N,C] f32[N,C]
        Split 13 | | f32[5] =[2,3] | f32[2] f32[3]
        Split 13 | | ~[N,8,H] =[1,2] | i64[1] i64[2] = [N] = [8,H]
        Split 18 | num_outputs=3 | f32[7] | f32[3] f32[3] f32[1]
        Split 13 | | f32[7] =[2,3] | !parts of [2, 3] for 1 results
        Slice 10 | | f32[10,H] =[1,0] =[-1,9223372036854775807] =[0,1] =[2,1] | f32[4,H]
        Slice 10 | | f32[N,H] =[3] =[2147483647] =[1] | f32[N,H-3]
        Slice 10 | | f32[N,H] =[3] =[1000000000] =[1] | f32[N,H-3]
        Slice 10 | | f32[N,H] =[0] =[4] =[1] | f32[N,?1]
        Slice 10 | | f32[N,H] =[0] =[-4] =[1] =[2] | f32[N,(H+1)//2-2]
        Slice 10 | | f32[N,512] =[0] ~[L] =[1] | f32[N,L]
        Slice 10 | | f32[N,512] =[0] ~[-L] =[1] | f32[N,?1]
        Slice 10 | | f32[N,H] =[-1] =[-9223372036854775807] =[1] =[-1] | f32[N,H]
        Slice 10 | | f32[N,H] i64[1] i64[1] =[1] | f32[N,?1]
        Slice 10 | | f32[N,H] i64[1] i64[1] i64[1] | f32[?1,?2]
        Slice 10 | | f32[4] =[0] =[4] =[0] =[0] | !a step is 0
        Slice 10 | | f32[4] =[0,0] =[4] =[0] | !unequal length
        Slice 9 | starts=[0,1] ends=[1,3] axes=[1,2] | f32[N,4,4] | f32[N,1,2]
        Pad 11 | | f32[N,3,H] =[0,0,1,0,0,2] | f32[N,3,H+3]
        Pad 18 | | f32[N,3,H] =[1,2] - =[-1] | f32[N,3,H+3]
        Pad 2 | pads=[0,1,0,-1] | f32[N,3] | f32[N,3]
        Pad 11 | | f32[N,3] =[0,-2,0,-2] | !cuts more from axis 1
        Pad 11 | | f32[N,3] i64[4] | f32[?1,?2]
        Tile 13 | | f32[N,3] =[2,1] | f32[2*N,3]
        Tile 13 | | f32[N,3] =[2] | !1 repeats for rank 2
        Expand 13 | | f32[N,1] ~[2,1,H] | f32[2,N,H]
        Expand 13 | | f32[3] =[4] | !do not broadcast
        ",
    );
}

#[test]
fn indexing_takes_the_shape_of_its_indices() {
    check(
        "
        Gather 13 | axis=1 | f32[N,10,4] i64[2,M] | f32[N,2,M,4]
        Gather 13 | axis=-1 | f32[N,10] i64[] | f32[N]
        Gather 13 | axis=2 | f32[N,10] i64[] | !axis 2 is out of range
        Gather 13 | | f32[] i64[] | !needs at least 1
        GatherElements 13 | axis=1 | f32[N,10] i64[N,2] | f32[N,2]
        GatherND 13 | batch_dims=1 | f32[N,10,4] i64[N,5,1] | f32[N,5,4]
        GatherND 13 | | f32[10] i64[5,2] | !index tuples of 2
        ScatterND 16 | | f32[N,10] i64[5,1] f32[5,10] | f32[N,10]
        ScatterElements 18 | | f32[N,10] i64[N,2] f32[N,2] | f32[N,10]
        TopK 11 | | f32[N,10] =[3] | f32[N,3] i64[N,3]
        TopK 11 | axis=0 | f32[N,10] i64[1] | f32[?1,10] i64[?1,10]
        TopK 11 | | f32[N,10] =[11] | !takes 11 of 10
        TopK 1 | k=2 axis=0 | f32[N,10] | f32[2,10] i64[2,10]
        CumSum 14 | | f32[N,10] =1 | f32[N,10]
        Compress 11 | axis=1 | f32[N,10] bool[10] | f32[N,?1]
        OneHot 11 | axis=1 | i64[N,5] =10 f32[2] | f32[N,10,5]
        ArgMax 13 | axis=1 | f32[N,10,4] | i64[N,1,4]
        ArgMin 13 | axis=-1 keepdims=0 | f32[N,10,4] | i64[N,10]
        ReduceMean 13 | axes=[2,3] | f32[N,C,H,W] | f32[N,C,1,1]
        ReduceMean 13 | axes=[-1] keepdims=0 | f32[N,C,H,W] | f32[N,C,H]
        ReduceMean 18 | keepdims=0 | f32[N,C,H,W] =[2,3] | f32[N,C]
        ReduceMean 18 | noop_with_empty_axes=1 | f32[N,C] | f32[N,C]
        ReduceMean 18 | | f32[N,C] | f32[1,1]
        ReduceMean 18 | | f32[N,C] i64[1] | f32[?1,?2]
        ReduceMean 18 | keepdims=0 | f32[N,C] i64[1] | f32[*]
        ReduceMean 13 | axes=[2] | f32[N,C] | !axis 2 is out of range
        ",
    );
}

#[test]
fn products_and_resizes_have_their_extents() {
    check(
        "
        MatMul 13 | | f32[N,M,K] f32[K,8] | f32[N,M,8]
        MatMul 13 | | f32[2,1,M,3] f32[5,3,4] | f32[2,5,M,4]
        MatMul 13 | | f32[3] f32[3,4] | f32[4]
        MatMul 13 | | f32[N,4,3] f32[3] | f32[N,4]
        MatMul 13 | | f32[3] f32[3] | f32[]
        MatMul 13 | | f32[2,3] f32[4,5] | !summed extents differ: 3 and 4
        MatMul 13 | | f32[] f32[3] | !needs at least 1
        Gemm 13 | transA=1 transB=1 | f32[K,N] f32[8,K] f32[8] | f32[N,8]
        Gemm 13 | | f32[1,K,N] f32[8,K] | !has rank 3, needs 2
        Einsum 12 | equation=bhid,bhjd->bhij | f32[B,H,I,8] f32[B,H,J,8] | f32[B,H,I,J]
        Einsum 12 | equation=ij,jk | f32[2,3] f32[3,4] | f32[2,4]
        Einsum 12 | equation=ij,jk->iz | f32[2,3] f32[3,4] | !`z` is on no operand
        QLinearMatMul 10 | | u8[N,4] f32[] u8[] i8[4,5] f32[] i8[] f32[] u8[] | u8[N,5]
        MatMulInteger 10 | | u8[N,4] i8[4,5] | i32[N,5]
        Resize 11 | | f32[N,3,H,7] - f=[1.0,1.0,2.0,0.6] | f32[N,3,2*H,4]
        Resize 13 | | f32[N,3,H,W] - - ~[N,3,56,2*W] | f32[N,3,56,2*W]
        Resize 18 | axes=[2,3] | f32[N,3,H,W] - - =[5,6] | f32[N,3,5,6]
        Resize 18 | axes=[2,3] keep_aspect_ratio_policy=not_larger | f32[N,3,H,W] - - =[5,6] | f32[N,3,?1,?2]
        Resize 11 | | f32[N,3] - f=[1.0] | !1 scales for 2 axes
        Upsample 9 | | f32[N,3,H,W] f=[1.0,1.0,2.0,2.0] | f32[N,3,2*H,2*W]
        Upsample 7 | scales=[1.0,1.0,0.5,2.0] | f32[N,3,H,W] | f32[N,3,H//2,2*W]
        DepthToSpace 13 | blocksize=2 | f32[N,12,H,W] | f32[N,3,2*H,2*W]
        DepthToSpace 13 | blocksize=2 | f32[N,3,H,W] | !3 is not divisible by 4
        SpaceToDepth 13 | blocksize=2 | f32[N,3,8,2*W] | f32[N,12,4,W]
        GridSample 16 | | f32[N,3,H,W] f32[N,5,6,2] | f32[N,3,5,6]
        LSTM 14 | hidden_size=5 direction=bidirectional | f32[T,N,3] f32[2,20,3] f32[2,20,5] | f32[T,2,N,5] f32[2,N,5] f32[2,N,5]
        GRU 14 | layout=1 | f32[N,T,3] f32[1,15,3] f32[1,15,5] | f32[N,T,1,5] f32[N,1,5]
        ",
    );
}

#[test]
fn quantized_ops_take_their_types_from_zero_points_and_scales() {
    check(
        "
        QuantizeLinear 13 | | f32[N,8] f32[] i8[] | i8[N,8]
        QuantizeLinear 13 | | f32[N,8] f32[] | u8[N,8]
        QuantizeLinear 21 | output_dtype=5 | f32[N,8] f32[] | i16[N,8]
        DequantizeLinear 19 | | i8[N,8] f16[] | f16[N,8]
        DynamicQuantizeLinear 11 | | f32[N,8] | u8[N,8] f32[] u8[]
        com.microsoft::QLinearAdd 1 | | u8[N,8] f32[] u8[] u8[8] f32[] u8[] f32[] u8[] | u8[N,8]
        com.microsoft::QLinearConcat 1 | axis=1 | f32[] u8[] u8[N,8] f32[] u8[] u8[N,2] f32[] u8[] | u8[N,10]
        com.microsoft::QLinearGlobalAveragePool 1 | channels_last=1 | u8[N,7,7,8] f32[] u8[] f32[] u8[] | u8[N,1,1,8]
        com.microsoft::FusedMatMul 1 | | f32[N,3,4] f32[4,5] | f32[N,3,5]
        ",
    );
}

#[test]
fn an_op_that_the_table_lacks_leaves_what_the_file_declares() {
    check(
        "
        Conv 29 | | f32[1,3,8,8] f32[8,3,3,3] | ?
        my.domain::Conv 1 | | f32[1,3,8,8] f32[8,3,3,3] | ?
        ",
    );
}
