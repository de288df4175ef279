//! Errors in a scenario, with their position.

use std::fmt;

use serde_json::{Value, json};

/// A step of the path to a position in a scenario.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    Key(String),
    Item(usize),
}

impl Step {
    pub fn key(word: &str) -> Self {
        Self::Key(word.to_owned())
    }
}

/// An invalid scenario: the message, and the position in the scenario.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Wrong {
    pub sentence: String,
    pub path: Vec<Step>,
}

impl Wrong {
    pub fn at(key: &str, sentence: impl Into<String>) -> Self {
        Self::within(&[Step::key(key)], sentence)
    }

    pub fn within(path: &[Step], sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), path: path.to_vec() }
    }

    /// Prefix the position with the path of the enclosing element.
    #[must_use]
    pub fn below(mut self, path: &[Step]) -> Self {
        self.path.splice(0..0, path.iter().cloned());
        self
    }

    pub fn unreadable(error: &serde_path_to_error::Error<serde_json::Error>) -> Self {
        use serde_path_to_error::Segment;
        let path = error.path().iter().filter_map(|segment| match segment {
            Segment::Seq { index } => Some(Step::Item(*index)),
            Segment::Map { key } => Some(Step::key(key)),
            Segment::Enum { variant } => Some(Step::key(variant)),
            Segment::Unknown => None,
        });
        // The position in the text is that of the generated JSON.
        let text = error.inner().to_string();
        let sentence = text.split(" at line ").next().unwrap_or(&text).to_owned();
        Self { sentence, path: path.collect() }
    }

    /// Return the error as JSON, for other programs.
    pub fn as_json(&self) -> Value {
        let path = self.path.iter().map(|step| match step {
            Step::Key(word) => json!(word),
            Step::Item(number) => json!(number),
        });
        json!({"error": self.sentence, "path": path.collect::<Vec<_>>()})
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, step) in self.path.iter().enumerate() {
            match step {
                Step::Key(word) if place == 0 => write!(formatter, "{word}")?,
                Step::Key(word) => write!(formatter, ".{word}")?,
                Step::Item(number) => write!(formatter, "[{number}]")?,
            }
        }
        if !self.path.is_empty() {
            write!(formatter, ": ")?;
        }
        write!(formatter, "{}", self.sentence)
    }
}

impl std::error::Error for Wrong {}
