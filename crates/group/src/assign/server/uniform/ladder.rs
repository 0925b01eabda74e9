//! Members in order of how much they own, kept up as loads change.
//!
//! A group is nearly always even, so its members stand on two or three *rungs*, each a run of an
//! array; a step to the next rung is one swap. Knows loads only, not what they are made of.

use super::super::facts::MemberIx;
use alloc::vec::Vec;

/// A cohort: members with the same subscription in the same rack.
pub(super) type CohortIx = u32;

/// The ladders of all cohorts, and where each member stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Ladders {
    ladders: Vec<Ladder>,
    seats: Vec<Seat>,
}

#[derive(Clone, Debug, Default)]
struct Ladder {
    /// Members by load, ascending.
    members: Vec<MemberIx>,
    rungs: Vec<Rung>,
}

/// Members with one load: from `start` to the start of the next.
#[derive(Clone, Copy, Debug)]
struct Rung {
    load: u32,
    start: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seat {
    cohort: CohortIx,
    place: u32,
    load: u32,
}

impl Ladders {
    /// A new, empty cohort.
    pub(super) fn add_cohort(&mut self) -> CohortIx {
        self.ladders.push(Ladder::default());
        (self.ladders.len() - 1) as CohortIx
    }

    /// The cohort a member is in.
    pub(super) fn cohort_of(&self, member: MemberIx) -> CohortIx {
        self.seats[member as usize].cohort
    }

    /// How many members a cohort has.
    pub(super) fn len(&self, cohort: CohortIx) -> usize {
        self.ladders[cohort as usize].members.len()
    }

    /// The members of a cohort that own the least, and how much.
    pub(super) fn least(&self, cohort: CohortIx) -> Option<(u32, &[MemberIx])> {
        self.ladders[cohort as usize].rung(0)
    }

    /// The members of a cohort that own the most, and how much.
    pub(super) fn most(&self, cohort: CohortIx) -> Option<(u32, &[MemberIx])> {
        let ladder = &self.ladders[cohort as usize];
        ladder.rung(ladder.rungs.len().wrapping_sub(1))
    }

    /// The members of a cohort that own exactly so much.
    pub(super) fn at(&self, cohort: CohortIx, load: u32) -> &[MemberIx] {
        let ladder = &self.ladders[cohort as usize];
        let rung = ladder.rungs.binary_search_by_key(&load, |rung| rung.load);
        rung.ok().and_then(|rung| ladder.rung(rung)).map_or(&[], |(_, members)| members)
    }

    /// The members of a cohort that own less.
    pub(super) fn below(&self, cohort: CohortIx, load: u32) -> &[MemberIx] {
        let ladder = &self.ladders[cohort as usize];
        let rung = ladder.rungs.partition_point(|rung| rung.load < load);
        &ladder.members[..ladder.start_of(rung)]
    }

    /// Puts a member into a cohort.
    pub(super) fn insert(&mut self, member: MemberIx, cohort: CohortIx, load: u32) {
        let slots = self.seats.len().max(member as usize + 1);
        self.seats.resize(slots, Seat::default());
        let ladder = &mut self.ladders[cohort as usize];
        let place = ladder.members.len() as u32;
        ladder.members.push(member);
        // It enters at the top and climbs down to where it belongs.
        let top = ladder.rungs.last().map_or(load, |rung| rung.load.max(load));
        if ladder.rungs.last().is_none_or(|rung| rung.load < top) {
            ladder.rungs.push(Rung { load: top, start: place });
        }
        self.seats[member as usize] = Seat { cohort, place, load: top };
        self.set_load(member, load);
    }

    /// Takes a member out of its cohort.
    pub(super) fn remove(&mut self, member: MemberIx) {
        let seat = self.seats[member as usize];
        let top = self.ladders[seat.cohort as usize].rungs.last().map_or(0, |rung| rung.load);
        self.set_load(member, top);
        let ladder = &mut self.ladders[seat.cohort as usize];
        let last = ladder.members.len() - 1;
        let place = self.seats[member as usize].place;
        ladder.swap(&mut self.seats, place, last as u32);
        ladder.members.pop();
        if ladder.rungs.last().is_some_and(|rung| rung.start as usize == last) {
            ladder.rungs.pop();
        }
    }

    /// Raises up to `count` of the least loaded members of a cohort by one, and says which.
    pub(super) fn raise_least(&mut self, cohort: CohortIx, count: usize) -> &[MemberIx] {
        let ladder = &mut self.ladders[cohort as usize];
        let Some(Rung { load, start }) = ladder.rungs.first().copied() else { return &[] };
        let (start, end) = (start as usize, ladder.start_of(1));
        let from = end - count.min(end - start);
        for member in &ladder.members[from..end] {
            self.seats[*member as usize].load = load + 1;
        }
        // The upper part of a run becomes the lower part of the next: nobody changes places.
        match ladder.rungs.get_mut(1) {
            Some(above) if above.load == load + 1 => above.start = from as u32,
            _ => ladder.rungs.insert(1, Rung { load: load + 1, start: from as u32 }),
        }
        if from == start {
            ladder.rungs.remove(0);
        }
        &ladder.members[from..end]
    }

    /// Moves a member to where its load belongs.
    pub(super) fn set_load(&mut self, member: MemberIx, load: u32) {
        let seat = self.seats[member as usize];
        let ladder = &mut self.ladders[seat.cohort as usize];
        let rung = ladder.rungs.binary_search_by_key(&seat.load, |rung| rung.load);
        let rung = rung.expect("a member stands on the rung of its load");
        if load > seat.load {
            ladder.climb(&mut self.seats, member, rung, load);
        } else if load < seat.load {
            ladder.descend(&mut self.seats, member, rung, load);
        }
        self.seats[member as usize].load = load;
    }

    /// Puts a whole cohort in order anew, for when many loads changed.
    pub(super) fn sort(&mut self, cohort: CohortIx, load_of: impl Fn(MemberIx) -> u32) {
        let ladder = &mut self.ladders[cohort as usize];
        ladder.members.sort_by_cached_key(|member| load_of(*member));
        ladder.rungs.clear();
        for (place, member) in (0..).zip(&ladder.members) {
            let load = load_of(*member);
            if ladder.rungs.last().is_none_or(|rung| rung.load != load) {
                ladder.rungs.push(Rung { load, start: place });
            }
            self.seats[*member as usize] = Seat { cohort, place, load };
        }
    }
}

impl Ladder {
    fn rung(&self, rung: usize) -> Option<(u32, &[MemberIx])> {
        let load = self.rungs.get(rung)?.load;
        Some((load, &self.members[self.start_of(rung)..self.start_of(rung + 1)]))
    }

    fn start_of(&self, rung: usize) -> usize {
        self.rungs.get(rung).map_or(self.members.len(), |rung| rung.start as usize)
    }

    fn climb(&mut self, seats: &mut [Seat], member: MemberIx, mut rung: usize, load: u32) {
        loop {
            let last = self.start_of(rung + 1) as u32 - 1;
            self.swap(seats, seats[member as usize].place, last);
            match self.rungs.get_mut(rung + 1) {
                Some(above) if above.load <= load => above.start = last,
                _ => self.rungs.insert(rung + 1, Rung { load, start: last }),
            }
            let is_left_empty = self.rungs[rung].start == last;
            if is_left_empty {
                self.rungs.remove(rung);
            } else {
                rung += 1;
            }
            if self.rungs[rung].load == load {
                return;
            }
        }
    }

    fn descend(&mut self, seats: &mut [Seat], member: MemberIx, mut rung: usize, load: u32) {
        loop {
            let first = self.rungs[rung].start;
            self.swap(seats, seats[member as usize].place, first);
            let is_left_empty = self.start_of(rung + 1) as u32 == first + 1;
            self.rungs[rung].start = first + 1;
            if is_left_empty {
                self.rungs.remove(rung);
            }
            if rung == 0 || self.rungs[rung - 1].load < load {
                self.rungs.insert(rung, Rung { load, start: first });
                return;
            }
            rung -= 1;
            if self.rungs[rung].load == load {
                return;
            }
        }
    }

    fn swap(&mut self, seats: &mut [Seat], a: u32, b: u32) {
        self.members.swap(a as usize, b as usize);
        for place in [a, b] {
            seats[self.members[place as usize] as usize].place = place;
        }
    }
}
