//! What a template is for, and what it gets.

use std::fmt;

use serde::Deserialize;

/// What a template is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    System,
    Tools,
    Task,
    Reminder,
    Repair,
    LastTurn,
    NoMoreTools,
}

impl Role {
    pub(super) const ALL: [Self; 7] = [
        Self::System,
        Self::Tools,
        Self::Task,
        Self::Reminder,
        Self::Repair,
        Self::LastTurn,
        Self::NoMoreTools,
    ];

    /// What every template gets.
    pub(super) const COMMON: [&'static str; 4] = ["criterion", "keys", "labels", "rule"];

    /// What a template of this role gets besides.
    pub(super) fn variables(self) -> &'static [&'static str] {
        match self {
            Self::LastTurn | Self::NoMoreTools => &[],
            Self::System => &["facts"],
            Self::Tools => &["dialect", "tools"],
            Self::Task => &["facts", "instruction", "notes", "pictures", "question"],
            Self::Reminder => &["dialect", "tools_allowed", "turns_left"],
            Self::Repair => &["dialect", "problem", "tools_allowed", "turns_left"],
        }
    }

    /// Whether a criterion needs a template of this role: always, only where there are tools, or never.
    pub(super) fn is_needed(self, tools: bool) -> bool {
        match self {
            Self::Task | Self::Repair => true,
            Self::Tools | Self::Reminder | Self::LastTurn | Self::NoMoreTools => tools,
            Self::System => false,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "system",
            Self::Tools => "tools",
            Self::Task => "task",
            Self::Reminder => "reminder",
            Self::Repair => "repair",
            Self::LastTurn => "last_turn",
            Self::NoMoreTools => "no_more_tools",
        })
    }
}
