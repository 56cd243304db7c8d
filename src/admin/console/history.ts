/** The audit trail, the newest first (api.ts). */
import { type AuditedChange, readTrail } from '../../auth/audit.ts';
import { ANY_TEXT, readParameters, single } from '../../query/parameters.ts';
import { integer } from '../../query/value-kinds.ts';
import { failed } from '../../refused.ts';
import { parseInstant } from '../../time.ts';
import { PERIOD, type Read, readEnd, type Sources } from './sources.ts';

const ENTRIES_MAX = 50;

const AUDIT_PARAMETERS = {
  ...PERIOD,
  after: single(integer(0, Number.MAX_SAFE_INTEGER)),
  actor: ANY_TEXT,
  subject: ANY_TEXT,
  id: ANY_TEXT,
};

/** `actor` (the user, the one behind sudo or the name of a link) and `id` must match exactly. */
export function readAudit({ access }: Sources, { query }: Read) {
  const parameters = readParameters(query, AUDIT_PARAMETERS);
  const from = readEnd(parameters, 'from') ?? 0;
  const to = readEnd(parameters, 'to') ?? Number.POSITIVE_INFINITY;
  const { actor } = parameters;
  const wanted = ['subject', 'id'] as const;
  const isWanted = (change: AuditedChange) => {
    const ms = parseInstant(change.at) ?? 0;
    return (
      ms >= from &&
      ms < to &&
      (actor === null || [change.actor, change.sudo_user, change.as].includes(actor)) &&
      wanted.every((name) => parameters[name] === null || `${change[name]}` === parameters[name])
    );
  };
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
