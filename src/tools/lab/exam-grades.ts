/**
 * Grades a client after the lab's exam: a pure function over the report and the record of the exam itself. The rules are
 * those of the manual's client guide. A rule that the exam had no occasion to test is not passed.
 */
import type { Compared, Evidence } from './evidence.ts';
import {
  FOLLOW,
  NOT_REACHED,
  notTested,
  OF_REQUESTS,
  type Result,
  type Rule,
  STORE,
  violation,
} from './exam-requests.ts';

export const RULES = {
  finishes: [
    'reads on until it has caught up',
    FOLLOW,
    ({ unfinished }) => (unfinished === null ? [] : [violation(unfinished)]),
  ],
  ...OF_REQUESTS,
  rows_with_cursor: ['stores rows and cursor together', STORE, withCopy('copy', lostAtKills)],
  one_row: ['stores one row for each detection', STORE, withCopy('copy', repeatedRows)],
  keeps_versions: ['takes no lower version', STORE, withCopy('copy', lowerTaken)],
  takes_versions: [
    'takes any higher version',
    'client-guide: What to store; client-guide: Follow the stream',
    // A restore raises versions by 1,000. What was wrong before it is the matter of other rules.
    withCopy('restored', ({ versions, expected }, { copy }) =>
      [...expected].flatMap(([id, version]) => {
        const copied = versions.get(id);
        const wasRight = copy?.versions.get(id) === copy?.expected.get(id);
        if (copied === version || !wasRight) return [];
        return violation(`${id} has version ${copied}, though version ${version} was delivered`);
      }),
    ),
  ],
  right_copy: [
    'ends with the right copy',
    'client-guide: Follow the stream; client-guide: Test your client',
    withCopy('copy', ({ versions, expected }, { atKills, lower }) =>
      [...expected].flatMap(([id, version]) => {
        const copied = versions.get(id);
        if (copied === version || (copied === undefined && atKills.has(id))) return [];
        if (id === lower?.id && copied === lower.copied) return [];
        const has = copied === undefined ? 'is missing' : `has version ${copied}`;
        return violation(`${id} ${has}, expected version ${version}`);
      }),
    ),
  ],
} as const satisfies Record<string, Rule>;

export type RuleName = keyof typeof RULES;

export type Finding = ReturnType<typeof gradeClient>[number];

const SHOWN_MAX = 5;

/**
 * @returns one finding for each rule, in the order of {@link RULES}: `advice` if the exam cannot tell whether the client does
 *   this otherwise. `detail`: what it observed, or why it could not; empty if the client passed. `requests`: their numbers
 */
export function gradeClient(evidence: Evidence) {
  return (Object.keys(RULES) as RuleName[]).map((rule) => {
    const [means, documentation, check]: Rule = RULES[rule];
    const result = check(evidence);
    const head = { rule, means, documentation };
    if ('outcome' in result) return { ...head, ...result, requests: [] };
    const details = result.slice(0, SHOWN_MAX).map(({ detail }) => detail);
    if (result.length > SHOWN_MAX) details.push(`${result.length - SHOWN_MAX} more`);
    const requests = [...new Set(result.flatMap((violation) => violation.requests))];
    const outcome = result.length === 0 ? ('passed' as const) : ('failed' as const);
    return { ...head, outcome, detail: details.join('; '), requests };
  });
}

/** @param which the copy that the check needs: null if it was not read */
function withCopy(which: 'copy' | 'restored', check: (copy: Compared, evidence: Evidence) => Result) {
  return (evidence: Evidence) => {
    const copy = evidence[which];
    if (copy !== null) return check(copy, evidence);
    return evidence.hasCopy
      ? NOT_REACHED
      : notTested('the exam cannot read the copy: name a command that prints it with --copy');
  };
}

function lostAtKills({ expected, versions }: Compared, { atKills, isRestarted }: Evidence): Result {
  if (!isRestarted) return notTested('the client was not restarted: name its command with --client');
  const lost = [...atKills].filter((id) => expected.has(id) && !versions.has(id));
  return lost.map((id) => violation(`${id} was delivered before a kill and is not in the copy`));
}

const NO_LOWER = notTested('no lower version could be delivered before the exam ended');

function repeatedRows({ repeated }: Compared, { lower }: Evidence): Result {
  const found = [...repeated].map((id) => violation(`${id} is in the copy several times`));
  return found.length > 0 || lower !== null ? found : NO_LOWER;
}

function lowerTaken(_: Compared, { lower }: Evidence): Result {
  if (lower === null) return NO_LOWER;
  const { id, copied, stored, delivered } = lower;
  if (copied !== null && copied >= stored) return [];
  const has = copied === null ? 'does not have it' : `has version ${copied}`;
  const came = `version ${stored} came first, then ${delivered} again`;
  return [violation(`${id}: ${came}, and the copy ${has}`)];
}
