//! Times one permutation and prints it as a line of JSON, or as a table.
//!
//!     permute_bench --elem 4 --shape 1,256,56,56 --perm 0,2,3,1 [--threads 1] [--mode hot|cold] [--pairs 0] [--reps 9] [--table]

use std::process::ExitCode;

use relayout_codegen::Hint;
use relayout_codegen::bench::{Request, permute};

fn numbers(text: &str) -> Result<Vec<usize>, String> {
    let parts = text.split(',').filter(|part| !part.is_empty());
    parts.map(|part| part.parse().map_err(|error| format!("{part}: {error}"))).collect()
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|error| format!("{text}: {error}"))
}

fn run() -> Result<(), String> {
    let mut request =
        Request { shape: Vec::new(), perm: Vec::new(), elem_bytes: 4, threads: 1, hint: Hint::Cold, pairs: 0, reps: 9 };
    let mut table = false;
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        if name == "--table" {
            table = true;
            continue;
        }
        let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--elem" => request.elem_bytes = number(&value)?,
            "--shape" => request.shape = numbers(&value)?,
            "--perm" => request.perm = numbers(&value)?,
            "--threads" => request.threads = number(&value)?,
            "--pairs" => request.pairs = number(&value)?,
            "--reps" => request.reps = number(&value)?,
            "--mode" => request.hint = if value == "hot" { Hint::Hot } else { Hint::Cold },
            _ => return Err(format!("{name} is no option")),
        }
    }
    let report = permute(&request).map_err(|error| error.to_string())?;
    if table {
        print!("{report}");
    } else {
        println!("{}", serde_json::to_string(&report).map_err(|error| error.to_string())?);
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("permute_bench: {error}");
            ExitCode::FAILURE
        }
    }
}
