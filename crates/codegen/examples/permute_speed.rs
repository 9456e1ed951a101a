//! Speed of the portable kernel beside a copy; `cargo run --release --example permute_speed`. Not a test: it reads the clock.

use std::time::Instant;

use relayout_codegen::{Error, permute, plan};

/// The best of a few runs, in GB/s of bytes read and written.
fn speed(bytes: usize, mut run: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let mut best = f64::INFINITY;
    for _ in 0..7 {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(2.0 * bytes as f64 / best / 1e9)
}

fn main() -> Result<(), Error> {
    let cases: &[(&str, &[usize], &[usize], usize)] = &[
        ("copy", &[64 << 20], &[0], 1),
        ("NCHW to NHWC, f32", &[8, 64, 112, 112], &[0, 2, 3, 1], 4),
        ("NHWC to NCHW, f32", &[8, 112, 112, 64], &[0, 3, 1, 2], 4),
        ("NCHW to NHWC, f16", &[8, 256, 56, 56], &[0, 2, 3, 1], 2),
        ("NCHW to NHWC, u8", &[8, 256, 56, 56], &[0, 2, 3, 1], 1),
        ("NCHW to NHWC, u8, small", &[1, 256, 56, 56], &[0, 2, 3, 1], 1),
        ("RGB to planes, u8", &[8, 512, 512, 3], &[0, 3, 1, 2], 1),
        ("RGB to planes, f32", &[4, 512, 512, 3], &[0, 3, 1, 2], 4),
        ("matrix, f32", &[4096, 4096], &[1, 0], 4),
        ("heads, f32, rows of 256 B", &[8, 512, 12, 64], &[0, 2, 1, 3], 4),
        ("heads, f32, rows of 32 B", &[8, 512, 64, 8], &[0, 2, 1, 3], 4),
        ("OIHW to OIHW16i16o, f32", &[16, 16, 16, 16, 9], &[0, 2, 4, 3, 1], 4),
        ("reversed, f32", &[64, 64, 64, 64], &[3, 2, 1, 0], 4),
    ];
    for (name, shape, perm, elem_bytes) in cases {
        let plan = plan(shape, perm, *elem_bytes)?;
        let src: Vec<u8> = (0..plan.bytes()).map(|i| i as u8).collect();
        let mut dst = vec![0; plan.bytes()];
        let speed = speed(plan.bytes(), || permute(&src, &mut dst, &plan))?;
        println!("{name}: {speed:.1} GB/s, {plan}");
    }
    Ok(())
}
