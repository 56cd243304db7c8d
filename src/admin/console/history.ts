/** The audit trail, and the log of operations on detections, the newest first (api.ts). */
import { type AuditedChange, readTrail } from '../../auth/audit.ts';
import { newestCommits } from '../../log/log-reader.ts';
import { ANY_TEXT, readParameters, single, type ValuesOf } from '../../query/parameters.ts';
import { integer } from '../../query/value-kinds.ts';
import { failed } from '../../refused.ts';
import { parseInstant } from '../../time.ts';
import { PERIOD, type Read, readEnd, type Sources } from './sources.ts';

const ENTRIES_MAX = 50;
const SEGMENTS_MAX = 2;

/** Follows every other entry, so it is shown only by a filter. */
const DELIVERY_TIME = 'delivery time';

const AUDIT_PARAMETERS = {
  ...PERIOD,
  after: single(integer(0, Number.MAX_SAFE_INTEGER)),
  actor: ANY_TEXT,
  subject: ANY_TEXT,
  id: ANY_TEXT,
};
const OPERATION_PARAMETERS = {
  ...PERIOD,
  after: single(integer(1, Number.MAX_SAFE_INTEGER)),
  kind: ANY_TEXT,
};

/** `actor` (the user, the one behind sudo or the name of a link) and `id` must match exactly. */
export function readAudit({ access }: Sources, { query }: Read) {
  const parameters = readParameters(query, AUDIT_PARAMETERS);
  const isInTime = timeFilter(parameters);
  const { actor } = parameters;
  const wanted = ['subject', 'id'] as const;
  const isWanted = (change: AuditedChange) =>
    isInTime(change.at) &&
    (actor === null || [change.actor, change.sudo_user, change.as].includes(actor)) &&
    wanted.every((name) => parameters[name] === null || `${change[name]}` === parameters[name]);
  const { changes: trail, damage } = readTrail(access());
  if (damage !== null) throw failed(damage);
  // An index in the trail, which only grows at its end.
  const end = Math.min(parameters.after ?? Infinity, trail.length);
  const entries: AuditedChange[] = [];
  let at = end;
  while (at > 0 && entries.length < ENTRIES_MAX) {
    at -= 1;
    const change = trail[at];
    if (change !== undefined && isWanted(change)) entries.push(change);
  }
  return { entries, next: at === 0 ? null : `${at}` };
}

export function readOperations({ folder }: Sources, { query }: Read) {
  const { kind, after, ...times } = readParameters(query, OPERATION_PARAMETERS);
  const isInTime = timeFilter(times);
  const before = after ?? Number.MAX_SAFE_INTEGER;
  const page = newestCommits(
    folder.log,
    { before, limit: ENTRIES_MAX, segmentsMax: SEGMENTS_MAX },
    ({ at, operation }) =>
      isInTime(at) && (kind === null ? operation.kind !== DELIVERY_TIME : operation.kind === kind),
  );
  const entries = page.commits.map(({ at, entry, operation: { kind: done, ...operation } }) => {
    return { at, entry, kind: done, operation };
  });
  return { entries, next: page.next === null ? null : `${page.next}` };
}

/** `from` included, `to` not. */
function timeFilter(times: ValuesOf<typeof PERIOD>): (at: string) => boolean {
  const from = readEnd(times, 'from') ?? 0;
  const to = readEnd(times, 'to') ?? Number.POSITIVE_INFINITY;
  return (at) => {
    const ms = parseInstant(at) ?? 0;
    return ms >= from && ms < to;
  };
}
