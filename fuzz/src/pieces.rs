//! Texts that are put together of pieces, which reach further than texts of random letters.

use arbitrary::{Result, Unstructured};

/// A text of up to `most` pieces; sometimes a letter is random.
pub fn text(of: &[&str], most: usize, u: &mut Unstructured<'_>) -> Result<String> {
    let mut text = String::new();
    for _ in 0..u.int_in_range(0..=most)? {
        if u.ratio(1, 24)? {
            text.push(u.arbitrary()?);
        } else {
            text.push_str(u.choose(of)?);
        }
    }
    Ok(text)
}
