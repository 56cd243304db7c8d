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
  /** A part of an entry, as JSON, in any case: of a user, a command, an id. */
  words: ANY_TEXT,
};

export function readAudit({ access }: Sources, { query }: Read) {
  const parameters = readParameters(query, AUDIT_PARAMETERS);
  const from = readEnd(parameters, 'from') ?? 0;
  const to = readEnd(parameters, 'to') ?? Number.POSITIVE_INFINITY;
  const words = parameters.words?.toLowerCase() ?? '';
  const isWanted = (change: AuditedChange) => {
    const ms = parseInstant(change.at) ?? 0;
    return ms >= from && ms < to && JSON.stringify(change).toLowerCase().includes(words);
  };
  const { changes: trail, damage } = readTrail(access());
  if (damage !== null) throw failed(damage);
  // `next` is an index in the trail, which only grows at its end.
  const end = parameters.after ?? trail.length;
  const wanted = trail.slice(0, end).flatMap((change, at) => (isWanted(change) ? [{ change, at }] : []));
  const page = wanted.slice(-ENTRIES_MAX).reverse();
  const next = wanted.length > page.length ? `${page.at(-1)?.at}` : null;
  return { entries: page.map(({ change }) => change), next };
}
