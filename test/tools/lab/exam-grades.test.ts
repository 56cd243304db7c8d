/** How the lab's exam grades a client: rule by rule, with handwritten reports (contract: Client procedures, Retry). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Evidence, type Moment } from '../../../src/tools/lab/evidence.ts';
import { gradeClient, RULES, type RuleName } from '../../../src/tools/lab/exam-grades.ts';
import type { RequestRecord } from '../../../src/tools/lab/report.ts';

interface Short extends Partial<RequestRecord> {
  /** Seconds since the previous request. */
  readonly wait?: number;
  readonly cursor?: string;
}

/** Requests for changes. By default, each succeeds with a last page; they start with `since`, then c1, c2 and so on. */
function requestsOf(...short: Short[]): RequestRecord[] {
  let ms = Date.UTC(2026, 0, 1);
  return short.map(({ wait = 0, cursor, ...own }, index) => {
    ms += wait * 1000;
    const at = new Date(ms).toISOString();
    return {
      ...{ number: index + 1, at, real_at: at, method: 'GET', path: '/v1/detections/changes' },
      ...{ endpoint: 'listChanges', user_agent: null, prefer: null, key_id: null, fault: null, code: null },
      ...{ status: 200, retry_after: null, rows: 1, has_more: false, as_of: null, waits: false },
      cursor_given: `c${index + 1}`,
      ...{ complete: true, finished_at: at, real_finished_at: at },
      parameters: cursor === undefined ? { since: 'T' } : { cursor },
      ...own,
    };
  });
}

const NO_PAGE = { rows: null, cursor_given: null, has_more: null };
const failure = (status: number, retry_after: number | null = null) => ({ status, retry_after, ...NO_PAGE });

const moment = (kind: Moment['kind'], after: number, code: number | null = null) => ({
  moments: [{ kind, after, code }],
});

function gradesOf(requests: RequestRecord[], more: Partial<Evidence> = {}) {
  const copy = { versions: new Map(), expected: new Map(), repeated: new Set<string>() };
  const evidence: Evidence = Object.assign(new Evidence(), {
    ...{ requests, unauthorizedAfter: 1000, isRestarted: true, hasCopy: true, copy, restored: copy },
    lower: { id: 't.1.1.1', delivered: 2, stored: 3, copied: 3 },
    ...more,
  });
  const findings = gradeClient(evidence);
  const rules = findings.map(({ rule }) => rule);
  assert.deepEqual(rules, Object.keys(RULES));
  return new Map(findings.map((finding) => [finding.rule, finding]));
}

/** @param rule the only violated rule; null: none */
function assertGrade(rule: RuleName | null, requests: RequestRecord[], more?: Partial<Evidence>): void {
  const failed = [...gradesOf(requests, more).values()].filter(({ outcome }) => outcome === 'failed');
  const rules = failed.map((finding) => finding.rule);
  assert.deepEqual(rules, rule === null ? [] : [rule]);
}

test('Retry-After is a lower bound', () => {
  const waiting = (wait: number) => requestsOf(failure(429, 3), { wait });
  assertGrade(null, waiting(3));
  assertGrade(null, waiting(60));
  assertGrade('waits_as_told', waiting(2.9));
  assertGrade(null, waiting(0), moment('killed', 1));
});

test('waits grow with consecutive errors', () => {
  const waiting = (...waits: number[]) => {
    const later = waits.map((wait, at) => ({ wait, ...(at < waits.length - 1 ? failure(500) : {}) }));
    return requestsOf(failure(503), ...later);
  };
  assertGrade(null, waiting(1, 2, 4));
  assertGrade(null, waiting(1, 1.1, 2));
  assertGrade(null, waiting(1));
  assertGrade('doubles_waits', waiting(1, 1, 1));
  assertGrade('doubles_waits', waiting(0.1));
});

test('the next cursor is that of the last complete page', () => {
  assertGrade(null, requestsOf({}, { cursor: 'c1' }, { cursor: 'c2' }));
  assertGrade('keeps_cursor', requestsOf({}, {}));
  assertGrade('keeps_cursor', requestsOf({}, { cursor: 'c1' }, { cursor: 'c1' }));
  assertGrade(null, requestsOf({}, { cursor: 'c1', rows: 0 }, { cursor: 'c1' }));
  const cut = { cursor: 'c1', complete: false };
  assertGrade(null, requestsOf({}, cut, { cursor: 'c1' }));
  assertGrade('keeps_cursor', requestsOf({}, cut, { cursor: 'c2' }));
});

test('a kill may lose the page in progress, and no more; a normal end loses nothing', () => {
  const requests = (cursor?: string) =>
    requestsOf({}, { cursor: 'c1' }, cursor === undefined ? {} : { cursor });
  const killed = moment('killed', 2);
  const ended = moment('ended', 2, 0);
  assertGrade(null, requests('c1'), killed);
  assertGrade(null, requests('c2'), killed);
  assertGrade('keeps_cursor', requests(), killed);
  assertGrade(null, requests('c2'), ended);
  assertGrade('keeps_cursor', requests('c1'), ended);
});

test('requests with other filters form other chains', () => {
  assertGrade(null, requestsOf({}, { parameters: { since: 'T', content_type: 'text' } }, { cursor: 'c1' }));
});

test('has_more is followed at once', () => {
  assertGrade(null, requestsOf({ has_more: true }, { cursor: 'c1' }));
  assertGrade('follows_has_more', requestsOf({ has_more: true }, { cursor: 'c1', wait: 3600 }));
  const empty = { has_more: true, rows: 0 };
  assertGrade('follows_has_more', requestsOf(empty, { cursor: 'c1', wait: 5 }));
  assertGrade(null, requestsOf(empty, { cursor: 'c1', wait: 1 }));
  const slow = { real_finished_at: new Date(Date.UTC(2026, 0, 1, 0, 1)).toISOString() };
  assertGrade(null, requestsOf({ has_more: true, ...slow }, { cursor: 'c1', wait: 62 }));
  const ended = moment('ended', 1, 0);
  assertGrade('follows_has_more', requestsOf({ has_more: true }, { cursor: 'c1' }), ended);
  assertGrade('follows_has_more', requestsOf({ has_more: true }), ended);
});

test('401 is repeated at most once, with a new token', () => {
  const token: Short = { endpoint: 'createToken', method: 'POST', cursor_given: null };
  assertGrade(null, requestsOf(failure(401)));
  assertGrade('handles_401', requestsOf(failure(401), failure(401)));
  assertGrade(null, requestsOf(failure(401), token, {}));
  assertGrade(null, requestsOf(failure(401), token, failure(401)));
  assertGrade('handles_401', requestsOf(failure(401), token, failure(401), token, failure(401)));
  assertGrade('handles_401', requestsOf(failure(401), { ...token, ...failure(401) }, failure(401)));
});

test('a client must survive every error but 401', () => {
  const ended = moment('ended', 1, 1);
  assertGrade('retries', requestsOf(failure(503)), ended);
  assertGrade(null, requestsOf(failure(401)), { ...ended, unauthorizedAfter: 0 });
});

test('a request that was refused with 400 is not repeated unchanged', () => {
  const asked = (subscription_id: string) => ({ parameters: { cursor: 'c1', subscription_id } });
  const refused = (...subscriptions: string[]) =>
    requestsOf({}, ...subscriptions.map((one) => ({ ...failure(400), ...asked(one) })));
  assertGrade('handles_400', refused('1', '1'), { invalidAfter: 1 });
  assertGrade(null, refused('1,2', '1'), { invalidAfter: 1 });
  const ended = moment('ended', 2, 1);
  assertGrade(null, refused('1', '1'), { invalidAfter: 1, ...ended });
});

test('a client waits for the allowance of the next day', () => {
  const ended = moment('ended', 1, 1);
  assertGrade('outlasts_allowance', requestsOf({ ...failure(429), code: 'daily_allowance' }, {}), ended);
});

test('a period that was begun is read to its end', () => {
  const page = (has_more: boolean, parameters: Record<string, string>): Short => ({
    ...{ endpoint: 'listDetections', has_more, parameters: { from: '2026-01-01', ...parameters } },
  });
  const begun = [page(true, { to: '2026-01-31' }), page(true, { to: '2026-01-31', cursor: 'a' })];
  assertGrade('finishes_periods', requestsOf(...begun));
  assertGrade(null, requestsOf(...begun, page(false, { to: '2026-02-01' })));
  assertGrade(null, requestsOf(page(true, { limit: '1' })));
});

test('the copy has every detection once, in its latest version, also after a restore', () => {
  const copied = (...versions: [string, number][]) => ({
    versions: new Map(versions),
    expected: new Map(Object.entries({ a: 2, b: 1 })),
    repeated: new Set<string>(),
  });
  const copy = (...versions: [string, number][]) => ({ copy: copied(...versions) });
  assertGrade(null, requestsOf({}), copy(['a', 2], ['b', 1], ['other', 1]));
  assertGrade('right_copy', requestsOf({}), copy(['a', 1], ['b', 1]));
  assertGrade('right_copy', requestsOf({}), copy(['a', 2]));
  assertGrade('rows_with_cursor', requestsOf({}), { ...copy(['a', 2]), atKills: new Set(['b', 'filtered']) });
  const right = copied(['a', 2], ['b', 1]);
  assertGrade('one_row', requestsOf({}), { copy: { ...right, repeated: new Set(['a']) } });
  const restored = { ...right, expected: new Map([['a', 1002]]) };
  assertGrade('takes_versions', requestsOf({}), { copy: right, restored });
  assertGrade('right_copy', requestsOf({}), { copy: copied(['a', 1], ['b', 1]), restored });
  const lower = { id: 'a', delivered: 2, stored: 3 };
  assertGrade('keeps_versions', requestsOf({}), { lower: { ...lower, copied: 2 } });
  assertGrade('keeps_versions', requestsOf({}), { lower: { ...lower, copied: null } });
  assertGrade(null, requestsOf({}), { lower: { ...lower, copied: 4 } });
});

test('a rule without an occasion to break it is not tested', () => {
  const nothing = gradesOf(requestsOf({}), { lower: null, unauthorizedAfter: null });
  const passed = [...nothing.values()].filter(({ outcome }) => outcome === 'passed');
  const rules = passed.map(({ rule }) => rule);
  assert.deepEqual(rules, ['finishes', 'rows_with_cursor', 'takes_versions', 'right_copy']);
  assert.equal(nothing.get('notices_gaps')?.outcome, 'advice');
  const cut = (has_more: boolean) =>
    gradesOf(requestsOf({ fault: 'f1', complete: false, has_more }, {})).get('keeps_cursor')?.outcome;
  assert.deepEqual([cut(false), cut(true)], ['not_tested', 'passed'], 'only a page with Link can tell');
  assert.equal(gradesOf(requestsOf({ endpoint: 'getMe' }, {})).get('notices_gaps')?.outcome, 'passed');
});

test('a copy that was not read has its reason', () => {
  const given = { isRestarted: true, unfinished: '401: it did not ask' };
  const reason = (hasCopy: boolean) =>
    gradeClient(Object.assign(new Evidence(), { hasCopy, ...given }))
      .filter(({ rule }) => ['rows_with_cursor', 'keeps_versions', 'right_copy'].includes(rule))
      .map(({ detail }) => detail);
  const [ended, none] = ['the exam ended before', /^the exam cannot read the copy: .*--copy$/];
  assert.deepEqual(reason(true), [ended, ended, ended]);
  for (const detail of reason(false)) assert.match(detail, none);
});
