/**
 * If the end of a log is lost (a restore to an earlier moment, an older data folder copied back), clients may have seen
 * changes that it does not have. Then a *version epoch* begins: versions are raised once, and positions continue far beyond
 * any that clients may have.
 *
 * An older folder looks intact. It is recognized by an authentic cursor with a position that this log never issued, or of
 * an epoch that it does not know.
 */
import { grouped } from '../counted.ts';
import { failed } from '../refused.ts';
import { type Database, preparedOnce } from '../store/database.ts';
import { DAY_MS } from '../time.ts';

/** How far positions move ahead: a year of microseconds. */
const EPOCH_POSITIONS = 3.2e13;
/** Where no epoch may begin, and positions no longer follow the clock: beyond 2^53, two of them would be the same number. */
const POSITION_MAX = Number.MAX_SAFE_INTEGER - EPOCH_POSITIONS;
/** A later clock is wrong, and positions can never go back. */
const CLOCK_MAX_MS = Date.UTC(2200);
/** A cursor has room for so much of an epoch's time: about a minute of milliseconds. */
const MARK_MS = 2 ** 16;
const NUMBER_MAX = 255;

/** `epoch`: the name of the one in which the position was issued; see {@link epochAt}. */
export type StreamPosition = Readonly<{ position: number; epoch: number }>;

/**
 * The position that belongs to a time; 0 if the clock is wrong, or there is none. It has every epoch's year, so that
 * positions follow the clock after an epoch, too, and a folder that is copied back does not issue them a second time.
 */
export function positionOfClock(nowMs: number, epochs = 0): number {
  const position = nowMs * 1000 + epochs * EPOCH_POSITIONS;
  return nowMs > CLOCK_MAX_MS || position > POSITION_MAX ? 0 : position;
}

/**
 * The position after which a new epoch continues.
 * @param known the last one that was certainly issued; @param epochs with the new one
 * @throws Refused `failed` if there is none: a year for each epoch leaves room for about 200
 */
export function positionBeyond(known: number, nowMs: number, epochs: number): number {
  const ofClock = positionOfClock(nowMs, epochs);
  const position = Math.max(known + EPOCH_POSITIONS, ofClock);
  if (position <= POSITION_MAX && (ofClock > 0 || nowMs > CLOCK_MAX_MS)) return position;
  throw failed(
    `positions in the change stream have no room for version epoch ${grouped(epochs)}: each moves them a year ahead. Restore a backup into an empty data folder, or start a new installation. Clients must then start again without their cursors`,
  );
}

export const numberOfEpoch = (epoch: number): number => Math.floor(epoch / MARK_MS);

const selectEpochs = preparedOnce<{ number: number; at: number }>(`
  SELECT number, at FROM version_epoch ORDER BY number`);
const selectAt = preparedOnce<{ number: number; at: number }>(`
  SELECT number, at FROM version_epoch WHERE position <= ? ORDER BY number DESC LIMIT 1`);
const selectNamed = preparedOnce<{ number: number }>(`
  SELECT number FROM version_epoch WHERE at % ${MARK_MS} = ? ORDER BY number DESC LIMIT 1`);
const selectNext = preparedOnce<{ position: number | null }>(`
  SELECT min(position) AS position FROM version_epoch WHERE number > ?`);
const selectAnnounced = preparedOnce<{ is_announced: number }>(`
  SELECT 1 AS is_announced FROM version_epoch
  WHERE position >= @position AND announced_after <= @parted AND number > @number`);
const selectBefore = preparedOnce<{ position: number }>(`
  SELECT last_position AS position FROM delivery WHERE first_position <= ? ORDER BY first_position DESC LIMIT 1`);

/** How much is announced again where it is not known what clients have missed. */
const UNKNOWN_PART_MS = 31 * DAY_MS;
const selectMonthBefore = preparedOnce<{ position: number | null }>(`
  SELECT max(last_position) AS position FROM delivery
  WHERE delivered_at <= (SELECT max(delivered_at) FROM delivery) - ${UNKNOWN_PART_MS}`);

/** The position after which the changes of the last 31 days of the log begin: clients may have missed those. */
export const monthBeforeEnd = (db: Database): number => selectMonthBefore(db).get()?.position ?? 0;

/** When versions were raised, in order, epoch milliseconds: once for each number, also those of abandoned histories. */
export function epochTimes(db: Database): number[] {
  const times: number[] = [];
  for (const { number, at } of selectEpochs(db).all()) while (times.length < number) times.push(at);
  return times;
}

/** How many version epochs are in a version, by its position: those that had begun. */
export const epochsIn = (db: Database, position: number): number => selectAt(db).get(position)?.number ?? 0;

/** The name of the epoch that issues a position: its number, and the last digits of its time. 0: there was none yet. */
export function epochAt(db: Database, position: number): number {
  const epoch = selectAt(db).get(position);
  return epoch === undefined ? 0 : Math.min(epoch.number, NUMBER_MAX) * MARK_MS + (epoch.at % MARK_MS);
}

/**
 * Whether a cursor proves that a part of the history is lost. It was issued here if a delivery covers its position, and
 * its epoch is the one of that position. A cursor of an earlier epoch is of a part whose loss was known when the next one
 * began. Others are made good once an epoch with a higher number has announced again all that their clients may have missed.
 * @returns the last position that its history has in common with this one, where none is certain: as
 *   {@link monthBeforeEnd}; null if the cursor proves nothing
 */
export function partingOf(db: Database, { position, epoch }: StreamPosition): number | null {
  const lastBefore = (limit: number) => selectBefore(db).get(limit)?.position ?? 0;
  if (lastBefore(position) >= position && epochAt(db, position) === epoch) return null;
  const known = epoch === 0 ? null : selectNamed(db).get(epoch % MARK_MS);
  const end = known === undefined ? null : (selectNext(db).get(known?.number ?? 0)?.position ?? null);
  if (end !== null && position <= end) return null;
  const parted = known === undefined ? monthBeforeEnd(db) : lastBefore(Math.min(position, end ?? position));
  return selectAnnounced(db).get({ position, parted, number: numberOfEpoch(epoch) }) === undefined
    ? parted
    : null;
}
