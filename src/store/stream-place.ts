/**
 * The place of a row of the change stream in `detections.db`: the rows of a stream are neighbours, ordered by sequence
 * number. In SQL the ordinal of a place is `place >> 34`, and indexes begin with that. SQLite uses such an index only if
 * it is compared with an expression (`= ordinal + 0`): with a bare column it would have to convert first.
 */

/** Sequence numbers are less; 0 is the place before the first row. */
const SEQUENCES = 2 ** 34;
/** With the greatest ordinal, places stay safe integers. The schema checks both limits. */
const ORDINALS = 2 ** 19;

/** @param ordinal of the stream, from 1; @param sequence from 0 @throws RangeError beyond the limits */
export function placeOf(ordinal: number, sequence: number): number {
  if (ordinal < 1 || ordinal >= ORDINALS || sequence < 0 || sequence >= SEQUENCES)
    throw new RangeError(`no place is left for row ${sequence} of stream ${ordinal}`);
  return ordinal * SEQUENCES + sequence;
}

export const ordinalOf = (place: number): number => Math.floor(place / SEQUENCES);

export const sequenceOf = (place: number): number => place % SEQUENCES;

/** The places of a stream: from `first` up to, but not including, `end`. */
export const placesOf = (ordinal: number) => ({ first: placeOf(ordinal, 0), end: (ordinal + 1) * SEQUENCES });
