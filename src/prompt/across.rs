//! What a pack says across its criteria: which waits for which, composite scores, how to report.

use toml::Spanned;

use super::criterion::Criterion;
use super::file::{CompositeEntry, CompositeName, CriterionEntry, FormulaEntry, ReportEntry};
use super::lint::Check;
use super::making::Making;
use super::report::ReportHints;
use super::score::{Composite, CompositeFunction, Formula};

impl Making<'_> {
    /// Criteria that others wait for must be there, and not wait for each other.
    pub(super) fn skips(&mut self, entries: &[CriterionEntry], criteria: &[Criterion]) {
        let other = |id: &str| {
            let found = criteria.iter().find(|criterion| criterion.id == id)?;
            Some(found.skip.as_ref()?.criterion.as_str())
        };
        for entry in entries {
            let Some(skip) = &entry.skip else { continue };
            let (id, at) = (entry.id.get_ref().as_str(), skip.span().start);
            let target = skip.get_ref().criterion.as_str();
            let Some(decider) = criteria.iter().find(|criterion| criterion.id == target) else {
                let message =
                    format!("{id:?} is skipped because of {target:?}, which is no criterion");
                self.wrong(Check::Format, at, message);
                continue;
            };
            let circle = std::iter::successors(Some(target), |id| other(id))
                .take(criteria.len() + 1)
                .any(|reached| reached == id);
            if circle {
                let message =
                    format!("{id:?} waits for {target:?}, which waits for it; break the circle");
                self.wrong(Check::Format, at, message);
            }
            let own = criteria.iter().find(|criterion| criterion.id == id);
            if !decider.scale.holds(skip.get_ref().at_most)
                || own.is_some_and(|own| !own.scale.holds(skip.get_ref().worth))
            {
                let message = format!("the skip of {id:?} has a score that is not on its scale");
                self.wrong(Check::Format, at, message);
            }
        }
    }

    pub(super) fn composites(
        &mut self,
        entries: &[CompositeEntry],
        criteria: &[Criterion],
    ) -> Vec<Composite> {
        let mut made: Vec<Composite> = Vec::new();
        for entry in entries {
            let (id, at) = (entry.id.get_ref().clone(), entry.id.span().start);
            if criteria.iter().any(|c| c.id == id) || made.iter().any(|c| c.id == id) {
                let message = format!("{id:?} names something else already; rename the composite");
                self.wrong(Check::Format, at, message);
            }
            let single = FormulaEntry {
                applies: entry.applies.clone(),
                function: entry.function,
                root: entry.root,
                of: entry.of.clone().unwrap_or_default(),
            };
            let alone = entry.function.is_some() || entry.of.is_some() || !entry.applies.is_empty();
            if alone && entry.formulas.is_some() {
                let message = format!(
                    "the composite {id:?} has formulas and a function of its own; drop either"
                );
                self.wrong(Check::Format, at, message);
            }
            let formulas = entry.formulas.clone().unwrap_or_else(|| vec![single]);
            if formulas.is_empty() {
                let message = format!("the composite {id:?} has no formula; add one");
                self.wrong(Check::Format, at, message);
            }
            let formulas = formulas.iter().map(|one| self.formula(one, &entry.id, criteria));
            made.push(Composite {
                name: entry.name.clone().unwrap_or_else(|| id.clone()),
                formulas: formulas.collect(),
                scale: self.scale(entry.scale, &entry.id),
                id,
            });
        }
        made
    }

    fn formula(
        &mut self,
        entry: &FormulaEntry,
        id: &Spanned<String>,
        criteria: &[Criterion],
    ) -> Formula {
        let (id, at) = (id.get_ref(), id.span().start);
        let FormulaEntry { applies, function, root, of } = entry.clone();
        if of.is_empty() {
            let message = format!("the composite {id:?} is of no criterion; list them under of");
            self.wrong(Check::Format, at, message);
        }
        for name in &of {
            match criteria.iter().find(|criterion| criterion.id == *name) {
                None => {
                    let message =
                        format!("the composite {id:?} is of {name:?}, which is no criterion");
                    self.wrong(Check::Format, at, message);
                }
                Some(known) if known.scale.highest.is_none() => {
                    let message = format!(
                        "the composite {id:?} is of {name:?}, whose scale has no highest: what would it be beside others?"
                    );
                    self.wrong(Check::Format, at, message);
                }
                Some(_) => {}
            }
        }
        let function = match (function, root) {
            (Some(CompositeName::Product), root) if root != Some(0) => {
                CompositeFunction::Product { root: root.unwrap_or(1) }
            }
            (Some(CompositeName::Mean), None) => CompositeFunction::Mean,
            _ => {
                let message = format!(
                    "the composite {id:?} needs function = \"mean\", or \"product\" with a root of 1 or more"
                );
                self.wrong(Check::Format, at, message);
                CompositeFunction::Mean
            }
        };
        Formula { applies: self.conditions(&applies, at), function, of }
    }

    pub(super) fn report(
        &mut self,
        entry: &ReportEntry,
        criteria: &[Criterion],
        composites: &[Composite],
    ) -> ReportHints {
        let ReportEntry { group, order, average, within, also, headline } = entry.clone();
        if let Some(headline) = &headline {
            let name = headline.get_ref();
            let known = criteria.iter().map(|c| &c.id).chain(composites.iter().map(|c| &c.id));
            if !known.into_iter().any(|id| id == name) {
                let message = format!("the headline {name:?} is no criterion and no composite");
                self.wrong(Check::Format, headline.span().start, message);
            }
        }
        ReportHints {
            group,
            order: order.unwrap_or_default(),
            average: average.unwrap_or_default(),
            within,
            also: also.unwrap_or_default(),
            headline: headline.map(Spanned::into_inner),
        }
    }
}
