//! Arithmetic over named sizes: `2*m*n*k`, `(n + 31) / 32`. So that the work of a kernel is said once, for every size.
//!
//! Numbers (`1e9`, `1_048_576`, `0.5`), names, `+ - * /`, parentheses, a leading `-`. A result that counts something must be
//! a whole number; nothing is rounded.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// Sizes by name.
pub type Sizes = BTreeMap<String, f64>;

/// Deeper nesting than anybody writes is refused, so that no text can exhaust the stack.
const MOST_DEPTH: u32 = 64;
/// Larger whole numbers are not exact in a float.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

/// An expression, as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    text: String,
    term: Term,
}

#[derive(Debug, Clone, PartialEq)]
enum Term {
    Number(f64),
    Name(String),
    Negative(Box<Term>),
    Pair(Box<Term>, Operator, Box<Term>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Plus,
    Minus,
    Times,
    Over,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// What was expected, and at which character.
    pub fn parse(text: &str) -> Result<Expression> {
        let mut parser = Parser { text, at: 0 };
        let term = parser.sum(0)?;
        if parser.peek().is_some() {
            return Err(parser.expected("an operator"));
        }
        Ok(Expression {
            text: text.trim().to_owned(),
            term,
        })
    }

    /// A whole number.
    pub fn whole(number: u64) -> Expression {
        Expression {
            text: number.to_string(),
            term: Term::Number(number as f64),
        }
    }

    /// Its value.
    ///
    /// # Errors
    /// A name without a size (with the names that there are), and a result that is no finite number.
    pub fn value(&self, sizes: &Sizes) -> Result<f64> {
        let value = self.term.value(sizes).map_err(|name| {
            let have: Vec<&str> = sizes.keys().map(String::as_str).collect();
            let have = if have.is_empty() {
                "none".to_owned()
            } else {
                have.join(", ")
            };
            Error::usage(format!(
                "`{self}`: there is no size `{name}`; sizes that there are: {have}"
            ))
        })?;
        if !value.is_finite() {
            return Err(Error::usage(format!("`{self}` is no finite number with these sizes")));
        }
        Ok(value)
    }

    /// Its value as a whole number of at least 1.
    ///
    /// # Errors
    /// Those of [`Expression::value`], and a result that is no such number.
    pub fn count(&self, sizes: &Sizes) -> Result<u64> {
        let value = self.value(sizes)?;
        if !(1.0..=MOST_EXACT).contains(&value) || value.fract() > 0.0 {
            return Err(Error::usage(format!(
                "`{self}` is {value}, and must be a whole number of at least 1"
            )));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole, and between 1 and 2^53, as was asked above"
        )]
        let count = value as u64;
        Ok(count)
    }
}

impl FromStr for Expression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Expression::parse(text).map_err(|error| error.to_string())
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Term {
    /// The value, or the name that has none.
    fn value<'a>(&'a self, sizes: &Sizes) -> Result<f64, &'a str> {
        Ok(match self {
            Term::Number(number) => *number,
            Term::Name(name) => *sizes.get(name).ok_or(name.as_str())?,
            Term::Negative(term) => -term.value(sizes)?,
            Term::Pair(left, operator, right) => {
                let (left, right) = (left.value(sizes)?, right.value(sizes)?);
                match operator {
                    Operator::Plus => left + right,
                    Operator::Minus => left - right,
                    Operator::Times => left * right,
                    Operator::Over => left / right,
                }
            }
        })
    }
}

/// Reads from left to right; `at` is a byte of `text`, always at a border of characters.
struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next character that is no blank.
    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.rest().chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    /// Takes as long as `belongs` says so.
    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|character| !belongs(character)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn expected(&mut self, what: &str) -> Error {
        let found = match self.peek() {
            Some(character) => format!("found `{}`", character.escape_debug()),
            None => "it ends".to_owned(),
        };
        let place = self.text.get(..self.at).map_or(0, |before| before.chars().count()) + 1;
        Error::usage(format!(
            "`{}`: expected {what} at character {place}, but {found}",
            self.text.trim()
        ))
    }

    fn sum(&mut self, depth: u32) -> Result<Term> {
        let mut left = self.product(depth)?;
        loop {
            let operator = match self.peek() {
                Some('+') => Operator::Plus,
                Some('-') => Operator::Minus,
                _ => return Ok(left),
            };
            self.at += 1;
            left = Term::Pair(Box::new(left), operator, Box::new(self.product(depth)?));
        }
    }

    fn product(&mut self, depth: u32) -> Result<Term> {
        let mut left = self.factor(depth)?;
        loop {
            let operator = match self.peek() {
                Some('*') => Operator::Times,
                Some('/') => Operator::Over,
                _ => return Ok(left),
            };
            self.at += 1;
            left = Term::Pair(Box::new(left), operator, Box::new(self.factor(depth)?));
        }
    }

    fn factor(&mut self, depth: u32) -> Result<Term> {
        if depth > MOST_DEPTH {
            return Err(Error::usage(format!(
                "an expression is nested deeper than {MOST_DEPTH} levels"
            )));
        }
        if self.take('-') {
            return Ok(Term::Negative(Box::new(self.factor(depth + 1)?)));
        }
        if self.take('(') {
            let inner = self.sum(depth + 1)?;
            return if self.take(')') {
                Ok(inner)
            } else {
                Err(self.expected("`)`"))
            };
        }
        match self.peek() {
            Some(first) if first.is_ascii_digit() || first == '.' => self.number(),
            Some(first) if first.is_alphabetic() || first == '_' => Ok(Term::Name(
                self.take_while(|c| c.is_alphanumeric() || c == '_').to_owned(),
            )),
            _ => Err(self.expected("a number, a name or `(`")),
        }
    }

    fn number(&mut self) -> Result<Term> {
        let begin = self.at;
        let digit = |c: char| c.is_ascii_digit() || c == '_';
        self.take_while(|c| digit(c) || c == '.');
        // `e` and its sign belong to the number only when digits follow.
        let exponent = self.rest().strip_prefix(['e', 'E']);
        let digits = exponent.map(|rest| rest.strip_prefix(['+', '-']).unwrap_or(rest));
        if let Some(digits) = digits.filter(|digits| digits.starts_with(|c: char| c.is_ascii_digit())) {
            self.at = self.text.len() - digits.len();
            self.take_while(|c| c.is_ascii_digit());
        }
        let written = self.text.get(begin..self.at).unwrap_or_default().replace('_', "");
        match written.parse() {
            Ok(number) => Ok(Term::Number(number)),
            Err(_) => {
                self.at = begin;
                Err(self.expected("a number"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes() -> Sizes {
        [("m", 4.0), ("n", 1_048_576.0), ("k_2", 3.0)]
            .map(|(name, size)| (name.to_owned(), size))
            .into()
    }

    fn value(text: &str) -> f64 {
        Expression::parse(text).unwrap().value(&sizes()).unwrap()
    }

    fn refused(text: &str) -> String {
        let expression = Expression::parse(text);
        expression
            .and_then(|expression| expression.value(&sizes()))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn expressions_are_read_as_everybody_writes_them() {
        let cases = [
            ("12", 12.0),
            ("2*m*k_2", 24.0),
            (" 2 * (m + k_2) ", 14.0),
            ("1 + 2 * 3", 7.0),
            ("10 - 4 - 3", 3.0),
            ("12 / 4 / 3", 1.0),
            ("-m + 5", 1.0),
            ("2e9", 2e9),
            ("1.5e+3", 1500.0),
            ("1_048_576 / n", 1.0),
            (".5*m", 2.0),
        ];
        for (text, wanted) in cases {
            assert_eq!(value(text), wanted, "{text}");
        }
    }

    #[test]
    fn what_is_no_expression_is_refused_with_its_place() {
        let cases = [
            ("", "``: expected a number, a name or `(` at character 1, but it ends"),
            (
                "2*",
                "`2*`: expected a number, a name or `(` at character 3, but it ends",
            ),
            ("2 n", "`2 n`: expected an operator at character 3, but found `n`"),
            ("é*(2+1", "`é*(2+1`: expected `)` at character 7, but it ends"),
            ("1.2.3", "`1.2.3`: expected a number at character 1, but found `1`"),
            ("2^3", "`2^3`: expected an operator at character 2, but found `^`"),
            ("q+1", "`q+1`: there is no size `q`; sizes that there are: k_2, m, n"),
            ("1/0", "`1/0` is no finite number with these sizes"),
            ("1e999", "`1e999` is no finite number with these sizes"),
        ];
        for (text, wanted) in cases {
            assert_eq!(refused(text), wanted);
        }
        assert!(refused(&"(".repeat(100_000)).contains("nested deeper than 64"));
    }

    #[test]
    fn a_count_is_whole_and_never_rounded() {
        let count = |text| {
            Expression::parse(text)
                .unwrap()
                .count(&sizes())
                .map_err(|error| error.to_string())
        };
        assert_eq!(count("n / 4"), Ok(262_144));
        assert_eq!(count("9007199254740992"), Ok(9_007_199_254_740_992));
        for text in ["m / 3", "m - m", "-1", "1e300"] {
            assert!(
                count(text)
                    .unwrap_err()
                    .ends_with("must be a whole number of at least 1"),
                "{text}"
            );
        }
    }
}
