//! The checker: from a problem and a certificate to a cost and a bound. It calls no solver.

use super::functions::{Function, Functions, INFINITE, UNITS, add};
use super::{Certificate, CertificateError, Checked, Proof, SCHEMA};
use crate::Cost;
use crate::problem::Problem;
use std::collections::BTreeSet;

/// The most entries that the checker computes in one table.
pub(super) const MAX_TABLE: usize = 1 << 20;
/// The most entries that it computes in all.
pub(super) const MAX_TOTAL: usize = 1 << 27;

/// Checks `certificate` against `problem`.
pub(super) fn check(problem: &Problem, certificate: &Certificate) -> Result<Checked, CertificateError> {
    if certificate.schema != SCHEMA {
        return Err(CertificateError::Schema { got: certificate.schema });
    }
    if certificate.problem != super::digest(problem) {
        return Err(CertificateError::OtherProblem);
    }
    let cost = problem.cost(&certificate.assignment);
    if cost != certificate.cost {
        return Err(CertificateError::Cost { claimed: certificate.cost, found: cost });
    }
    let mut functions = Functions::of(problem);
    shift(&mut functions, certificate)?;
    let components = functions.components();
    if components.len() != certificate.parts.len() {
        return Err(CertificateError::Parts { got: certificate.parts.len(), want: components.len() });
    }
    let mut budget = MAX_TOTAL;
    let mut bound = Cost::ZERO;
    for (number, (proof, group)) in certificate.parts.iter().zip(&components).enumerate() {
        let own = of_group(&functions, group);
        let mut checker = Part { domains: &functions.domains, number, budget: &mut budget };
        let free: BTreeSet<usize> = group.iter().copied().collect();
        bound += whole(checker.bound(proof, own, &free)?);
    }
    // What cannot be paid at all is bounded by nothing.
    if bound < certificate.bound {
        return Err(CertificateError::Bound { claimed: certificate.bound, found: bound });
    }
    Ok(Checked { cost, bound: certificate.bound.min(cost) })
}

/// The functions whose variables are among `group`; one that depends on nothing belongs to no group and there is none.
pub(super) fn of_group(functions: &Functions, group: &[usize]) -> Vec<Function> {
    let of = |function: &&Function| function.scope.first().is_some_and(|var| group.binary_search(var).is_ok());
    functions.list.iter().filter(of).cloned().collect()
}

/// Costs are whole nanoseconds, so a bound between two of them is as good as the upper one.
pub(super) fn whole(units: i128) -> Cost {
    if units >= INFINITE {
        return Cost::INFINITE;
    }
    let up = units.div_euclid(UNITS) + i128::from(units.rem_euclid(UNITS) != 0);
    u64::try_from(up.max(0)).map_or(Cost::INFINITE, Cost::new)
}

/// Moves the amounts of the certificate from functions to those of single variables. That changes no sum.
fn shift(functions: &mut Functions, certificate: &Certificate) -> Result<(), CertificateError> {
    for (at, shift) in certificate.shifts.iter().enumerate() {
        let bad = || CertificateError::Shift { at };
        let (from, var) = (shift.function as usize, shift.variable as usize);
        let states = *functions.domains.get(var).ok_or_else(bad)?;
        // The first functions are those of single variables, and what is moved comes from another one.
        let known = from >= functions.domains.len() && functions.list.get(from).is_some_and(|f| f.scope.contains(&var));
        if !known || shift.amounts.len() != states {
            return Err(bad());
        }
        let stride = functions.list[from].stride(var, &functions.domains);
        for (i, entry) in functions.list[from].data.iter_mut().enumerate() {
            *entry = add(*entry, -i128::from(shift.amounts[i / stride % states]));
        }
        for (entry, &amount) in functions.list[var].data.iter_mut().zip(&shift.amounts) {
            *entry = add(*entry, i128::from(amount));
        }
    }
    Ok(())
}

/// One part under way.
pub(super) struct Part<'a> {
    pub(super) domains: &'a [usize],
    pub(super) number: usize,
    /// Entries that may still be computed.
    pub(super) budget: &'a mut usize,
}

impl Part<'_> {
    fn wrong(&self, why: &str) -> CertificateError {
        CertificateError::Proof { part: self.number, why: why.to_owned() }
    }

    /// What the sum of `functions` over the variables `free` is at least.
    fn bound(
        &mut self,
        proof: &Proof,
        functions: Vec<Function>,
        free: &BTreeSet<usize>,
    ) -> Result<i128, CertificateError> {
        // Depth is that of the certificate, which serde limits; a loop keeps the stack flat all the same.
        let mut open = vec![(proof, functions, free.clone())];
        let mut least = INFINITE;
        while let Some((proof, functions, free)) = open.pop() {
            match proof {
                Proof::Eliminate { order, entries } => {
                    least = least.min(self.eliminate(order, *entries, functions, &free)?);
                }
                Proof::Branch { variable, cases } => {
                    let var = *variable as usize;
                    if !free.contains(&var) {
                        return Err(self.wrong("it branches on a variable that is not free there"));
                    }
                    if cases.len() != self.domains[var] {
                        return Err(self.wrong("a branch has not one case for each state"));
                    }
                    let mut rest = free;
                    rest.remove(&var);
                    for (state, case) in cases.iter().enumerate() {
                        let fixed: Vec<Function> =
                            functions.iter().map(|f| f.fixed(var, state, self.domains)).collect();
                        self.pay(fixed.iter().map(|f| f.data.len()).sum())?;
                        open.push((case, fixed, rest.clone()));
                    }
                }
            }
        }
        Ok(least)
    }

    fn pay(&mut self, entries: usize) -> Result<(), CertificateError> {
        let left = self.budget.checked_sub(entries);
        *self.budget = left.ok_or_else(|| self.wrong("it asks for more table entries than a check may compute"))?;
        Ok(())
    }

    /// Minimizes over the variables in this order. Functions that together would need a larger table than `entries` are
    /// minimized apart, which can only lower the sum.
    pub(super) fn eliminate(
        &mut self,
        order: &[u32],
        entries: usize,
        mut functions: Vec<Function>,
        free: &BTreeSet<usize>,
    ) -> Result<i128, CertificateError> {
        if entries > MAX_TABLE {
            return Err(self.wrong("it asks for larger tables than a check may compute"));
        }
        let named: BTreeSet<usize> = order.iter().map(|&var| var as usize).collect();
        if order.len() != free.len() || named != *free {
            return Err(self.wrong("its order does not name each free variable once"));
        }
        let mut position = vec![usize::MAX; self.domains.len()];
        for (at, &var) in order.iter().enumerate() {
            position[var as usize] = at;
        }
        let mut buckets: Vec<Vec<Function>> = vec![Vec::new(); order.len()];
        let mut sum = 0;
        let mut file = |function: Function, buckets: &mut Vec<Vec<Function>>| match function
            .scope
            .iter()
            .map(|&v| position[v])
            .min()
        {
            Some(at) => buckets[at].push(function),
            None => sum = add(sum, function.data.first().copied().unwrap_or(0)),
        };
        for function in functions.drain(..) {
            file(function, &mut buckets);
        }
        for (at, &var) in order.iter().enumerate() {
            for group in groups(std::mem::take(&mut buckets[at]), entries, self.domains) {
                let (message, size) = minimize(&group, var as usize, self.domains);
                self.pay(size)?;
                file(message, &mut buckets);
            }
        }
        Ok(sum)
    }
}

/// Functions of one bucket, put together as long as their joint table stays within `entries`: larger scopes first.
fn groups(mut bucket: Vec<Function>, entries: usize, domains: &[usize]) -> Vec<Vec<Function>> {
    bucket.sort_by_key(|function| std::cmp::Reverse(function.scope.len()));
    let mut groups: Vec<(BTreeSet<usize>, Vec<Function>)> = Vec::new();
    for function in bucket {
        let fits = |(scope, _): &&mut (BTreeSet<usize>, Vec<Function>)| {
            let more: Vec<usize> = function.scope.iter().copied().filter(|var| !scope.contains(var)).collect();
            more.is_empty() || size(scope.iter().chain(&more).copied(), domains) <= entries
        };
        match groups.iter_mut().find(fits) {
            Some((scope, members)) => {
                scope.extend(&function.scope);
                members.push(function);
            }
            None => groups.push((function.scope.iter().copied().collect(), vec![function])),
        }
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

/// Entries of a table over these variables, saturating.
pub(super) fn size(scope: impl Iterator<Item = usize>, domains: &[usize]) -> usize {
    scope.fold(1, |size: usize, var| size.saturating_mul(domains[var]))
}

/// The least sum of `functions` over the states of `var`, for each joint state of the others, and how many sums that took.
fn minimize(functions: &[Function], var: usize, domains: &[usize]) -> (Function, usize) {
    let rest: BTreeSet<usize> = functions.iter().flat_map(|f| f.scope.iter().copied()).filter(|&v| v != var).collect();
    let scope: Vec<usize> = rest.into_iter().collect();
    let strides: Vec<Vec<usize>> =
        functions.iter().map(|f| scope.iter().map(|&v| f.stride(v, domains)).collect()).collect();
    let steps: Vec<usize> = functions.iter().map(|f| f.stride(var, domains)).collect();
    let count = size(scope.iter().copied(), domains);
    let mut offsets = vec![0_usize; functions.len()];
    let mut digits = vec![0_usize; scope.len()];
    let mut data = Vec::with_capacity(count);
    for _ in 0..count {
        let sum = |state: usize| {
            let entries = functions.iter().zip(&offsets).zip(&steps);
            entries.fold(0, |sum, ((f, &offset), &step)| add(sum, f.data[offset + step * state]))
        };
        data.push((0..domains[var]).map(sum).min().unwrap_or(INFINITE));
        for place in (0..scope.len()).rev() {
            digits[place] += 1;
            let wrapped = digits[place] == domains[scope[place]];
            for (offset, strides) in offsets.iter_mut().zip(&strides) {
                *offset += strides[place];
                if wrapped {
                    *offset -= strides[place] * domains[scope[place]];
                }
            }
            if !wrapped {
                break;
            }
            digits[place] = 0;
        }
    }
    (Function { scope, data }, count.saturating_mul(domains[var]))
}
