//! The checker by itself, without the optimizer: `prove INPUT RESULT [--proof FILE]`.

use relayout_proof::{Error, Proof, ReadingOf, Verdict, find, prove};
use std::path::Path;
use std::process::ExitCode;

fn checked(words: &[String]) -> Result<Verdict, Error> {
    let (input, result) = (Path::new(&words[0]), Path::new(&words[1]));
    if let Some([option, file]) = words.get(2..)
        && option == "--proof"
    {
        return prove(input, result, &Proof::open(Path::new(file))?);
    }
    let found = find(input, result, ReadingOf::default())?;
    if let Some(cut) = &found.cut {
        eprintln!("{cut}");
    }
    Ok(found.verdict)
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "prove").collect();
    if words.len() != 2 && words.len() != 4 {
        eprintln!("usage: prove INPUT RESULT [--proof FILE]");
        return ExitCode::from(2);
    }
    match checked(&words) {
        Ok(verdict) => {
            println!("{verdict}");
            ExitCode::from(if verdict.holds() { 0 } else { 3 })
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(1)
        }
    }
}
