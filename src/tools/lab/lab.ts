/**
 * A lab: a real appliance with a clock, a feed and answers that tests set while clients use it. It takes part in each
 * request as `Interventions`; everything else goes the ordinary way, as export files, requests to the ingest
 * thread and counts of the allowance.
 */
import type { IncomingMessage } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { normalAddress } from '../../addresses.ts';
import type { LabState } from '../../admin/console/api.ts';
import { isForeign, isHostAccepted } from '../../admin/host-header.ts';
import { answerRequest, OPERATIONS_PATH, send } from '../../admin/operation-requests.ts';
import { type AskLab, problem } from '../../admin/thread-messages.ts';
import type { LabJoined, LabParts } from '../../appliance.ts';
import { getAccount } from '../../auth/accounts.ts';
import type { Doing } from '../../auth/actor.ts';
import { noteOperation } from '../../auth/audit.ts';
import { openAccess } from '../../auth/open-access.ts';
import { listSubscriptions } from '../../auth/subscriptions.ts';
import { moveClock, now } from '../../clock.ts';
import { isLoopback } from '../../config/listening.ts';
import type { Config } from '../../config/load.ts';
import type { Exchange } from '../../http/exchange.ts';
import type { IngestRequest } from '../../ingest/threads/ingest-messages.ts';
import { PAGE_ROWS_DEFAULT, SINCE_AGE_MAX_MS } from '../../limits/api-limits.ts';
import { accountUsageId } from '../../limits/daily-rows.ts';
import { epochAt } from '../../log/version-epoch.ts';
import { isLabName, type LabName, type MembersOf, membersOf, parseLabTime } from '../../operations/lab.ts';
import { readMembers, type ValuesOf } from '../../operations/member.ts';
import { readStreamHead } from '../../query/as-of.ts';
import { invalid } from '../../query/parameters.ts';
import { failed } from '../../refused.ts';
import { type Database, writing } from '../../store/database.ts';
import type { InstallationKind } from '../../store/installation.ts';
import { formatMs, parseDuration } from '../../time.ts';
import { SAMPLE_ACCOUNT } from '../generate/rows.ts';
import { createFaults, type Fault } from './faults.ts';
import { createFeed, type Feed } from './feed.ts';
import { interveneIn } from './lab-request.ts';
import { Report } from './report.ts';

type Acts = { readonly [Name in LabName]: (values: ValuesOf<MembersOf<Name>>, operation: Doing) => unknown };

const ASKER = { way: 'api', by: { actor: 'test' }, mayAct: true, isValid: () => true } as const;
const NOT_HERE =
  'A lab answers operations to its own machine only: ask on its loopback address, or localhost, and not from a page of another origin.';

/** How far ahead of the head the cursor is that proves that the end of the log is lost: soon after it. */
const LOST_POSITIONS = 1_000_000;

export function createLab(seed: string, config: Config, kind: InstallationKind) {
  const feed = createFeed(seed, config, running);
  const faults = createFaults();
  const requests = new Report();
  const started_at = formatMs(now());
  let parts: LabParts | null = null;
  /** Resolves when the last operation is done. */
  let last: Promise<unknown> = Promise.resolve();

  function running(): LabParts {
    if (parts === null) throw failed('the lab is starting. Try again in a moment.');
    return parts;
  }

  function withAccess<Result>(operation: Doing, use: (db: Database) => Result): Result {
    using db = openAccess(config.dataFolder, { kind, operation });
    return use(db);
  }

  const clock = () => ({ now: new Date(now()).toISOString() });

  /** Resolves when every dropped file is processed. */
  const rested = () => running().ingest.rested();

  const acts: Acts = {
    clock: async (given) => {
      const [when, ...more] = Object.values(given);
      if (when === undefined) return clock();
      if (more.length > 0) throw invalid('clock: expected only one of when, advance and to');
      const byMs = parseDuration(when) ?? (parseLabTime(when) ?? 0) - now();
      if (parseLabTime(formatMs(now() + byMs)) === null)
        throw invalid('clock: expected to stay between 2001 and 2099');
      moveClock(byMs);
      running().waiting.changed();
      await rested();
      lab.onMoved();
      return clock();
    },
    drop: feed.drop,
    late: feed.late,
    correct: ({ id, score }) => feed.score(id, score),
    gap: async ({ export: name, status, window }, operation) => {
      const wanted = parseLabTime(window ?? '');
      const shown = (startMs: number) => ({ export: name, window_start: formatMs(startMs), status });
      if (status === 'failed') return shown(await feed.fail(name, wanted));
      const window_start = wanted ?? feed.missable(name);
      const request: IngestRequest = { kind: 'gap', export: name, window_start, status };
      withAccess(operation, (db) => writing(db, () => noteOperation(db, request)));
      await running().ingest.ask(request);
      await rested();
      return shown(window_start);
    },
    restore: async () => {
      const { detections, ingest } = running();
      const { position: head } = readStreamHead(detections());
      ingest.endLost({ position: head + LOST_POSITIONS, epoch: epochAt(detections(), head) });
      await rested();
      return { versions_raised_by: 1000 };
    },
    allowance: ({ account: account_id = SAMPLE_ACCOUNT.id, used }, operation) => {
      const { dailyRows } = running();
      const account = withAccess(operation, (db) => getAccount(db, account_id));
      const allowance = account.daily_rows ?? config.limits.daily_rows;
      const id = accountUsageId(account);
      dailyRows.add('account', id, (used ?? allowance) - dailyRows.used('account', id, now()), now());
      return { used: used ?? allowance, daily_rows: allowance };
    },
    'fault add': (spec) => ({ id: faults.add(spec).id, ...spec }),
    'fault list': () => faults.list(),
    'fault clear': ({ id }) => faults.remove(id ?? null),
    report: ({ after = 0, clear = false }) => {
      const head = { seed, started_at, ...clock(), real_now: new Date().toISOString() };
      const report = { ...head, faults: faults.list(), ...requests.read(after) };
      if (clear) requests.clear();
      return report;
    },
  };

  /** @param values have come through threads */
  const act = <Name extends LabName>(name: Name, { values, operation }: AskLab): unknown =>
    acts[name](readMembers(membersOf(name), values), operation);

  /** Changes the request for a shorter page, or into that for the page before. @returns null if there is none */
  function redirected(fault: Fault, exchange: Exchange, endpoint: string | null): Fault | null {
    const { duplicate, page_rows, pages } = fault.spec;
    const parameters = new URLSearchParams(exchange.query);
    // Another endpoint would refuse the parameter.
    if (page_rows !== undefined && (endpoint === 'listChanges' || endpoint === 'listDetections')) {
      const limit = Number(parameters.get('limit') ?? PAGE_ROWS_DEFAULT);
      if (page_rows < limit) parameters.set('limit', `${page_rows}`);
    } else if (duplicate === true) {
      const before = requests.pageBefore(parameters.get('cursor') ?? '', pages);
      // The service would refuse a start that is too old by now.
      if (before === null || Date.parse(before.since ?? '') < now() - SINCE_AGE_MAX_MS) {
        fault.fired -= 1;
        return null;
      }
      for (const name of ['cursor', 'since', ...(pages === undefined ? [] : ['limit'])]) {
        parameters.delete(name);
        if (before[name] !== undefined) parameters.set(name, before[name]);
      }
    } else return fault;
    exchange.query = `${parameters}`;
    return fault;
  }

  const joined: LabJoined = {
    control(request, response) {
      // A demonstration may have an export of its user.
      if (kind !== 'lab' || !(request.url ?? '').startsWith(OPERATIONS_PATH)) return false;
      response.on('error', () => {});
      if (isOwn(request)) {
        const answered = answerRequest(request, response, running().operations(), ASKER);
        answered.then((told) => send(response, told)).catch(() => response.destroy());
      } else send(response, problem(403, NOT_HERE, 'forbidden'));
      return true;
    },
    begin(exchange, baseUrl) {
      const { request } = exchange;
      const endpoint = exchange.endpoint?.id ?? null;
      const record = requests.begin(request, endpoint, () => running().waiting.isIdle(request.socket));
      const found = endpoint === null ? null : faults.next(endpoint);
      const fault = found === null ? null : redirected(found, exchange, endpoint);
      return interveneIn({ exchange, fault, record, baseUrl, dailyRows: config.limits.daily_rows });
    },
    async run(asked) {
      const { name, values, operation } = asked;
      if (!isLabName(name)) throw new Error(`there is no operation lab ${name}`);
      if (isRead(name, values)) return act(name, asked);
      // One after the other: a drop must not replace a file that waits.
      const done = last.then(() => {
        feed.watch(withAccess(operation, listSubscriptions));
        return act(name, asked);
      });
      last = done.catch(() => {});
      return done;
    },
    shown: (): LabState => ({
      now: formatMs(now()),
      seed,
      faults: faults.list().map(({ id, fired, left, seen: _, ...members }) => ({ id, members, fired, left })),
    }),
  };
  const lab = {
    rested,
    /** Called after the clock was moved. */
    onMoved: () => {},
    /** @param given of the appliance, whose server calls the returned hooks */
    join(given: LabParts): LabJoined {
      parts = given;
      return joined;
    },
    /** Drops the first files before any operation. In a later turn, so that the ingest thread starts meanwhile. */
    fill(drop: (feed: Feed) => Promise<void>): Promise<void> {
      const filled = nextTurn().then(() => drop(feed));
      last = filled.catch(() => {});
      return filled;
    },
  };
  return lab;
}

/** Whether it changes nothing, and so need not wait for other operations. */
function isRead(name: LabName, values: object): boolean {
  const isShown = name === 'clock' && Object.keys(values).length === 0;
  return isShown || name === 'report' || name === 'fault list' || name === 'fault clear';
}

/**
 * Whether an operation on the port of the API, which needs no session, comes from this machine, under a host name that the
 * public DNS cannot have (a web page could have its own name resolve to this machine), and from no page of another origin.
 */
function isOwn({ socket, headers }: IncomingMessage): boolean {
  const isLocal = isLoopback(normalAddress(socket.remoteAddress ?? '') ?? '');
  return isLocal && isHostAccepted(headers.host, []) && !isForeign({ headers });
}
