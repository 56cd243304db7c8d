/**
 * Where a row of the change stream lies in `detections.db`: a stream's rows lie together, in the order of their sequence
 * numbers. In SQL the ordinal of a place is `place >> 34`, and indexes begin with that. SQLite uses them only where it is
 * compared with an expression: with the bare column it would have to convert first (`= ordinal + 0`).
 */

/** Sequence numbers of a stream are below it, and 0 stands for the place before its first row. */
const SEQUENCES = 2 ** 34;
/** With the greatest ordinal, places stay safe integers. The schema checks both limits. */
const ORDINALS = 2 ** 19;

/** @param ordinal of the stream, from 1; @param sequence from 0 @throws RangeError beyond the limits */
export function placeOf(ordinal: number, sequence: number): number {
  if (ordinal < 1 || ordinal >= ORDINALS || sequence < 0 || sequence >= SEQUENCES)
    throw new RangeError(`no place is left for row ${sequence} of stream ${ordinal}`);
  return ordinal * SEQUENCES + sequence;
}

export function ordinalOf(place: number): number {
  return Math.floor(place / SEQUENCES);
}

export function sequenceOf(place: number): number {
  return place % SEQUENCES;
}

/** Places of a stream are at or above `first`, and below `end`. */
export function placesOf(ordinal: number): { readonly first: number; readonly end: number } {
  return { first: placeOf(ordinal, 0), end: (ordinal + 1) * SEQUENCES };
}
