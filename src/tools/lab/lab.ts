/**
 * A lab: a real appliance with a clock, a feed and answers that tests set while clients use it. It takes part in each
 * request as `Interventions`; everything else goes the ordinary way, as export files, requests to the ingest
 * thread and counts of the allowance.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { normalAddress } from '../../addresses.ts';
import type { LabState } from '../../admin/console/api.ts';
import { isForeign, isHostAccepted } from '../../admin/host-header.ts';
import { answerRequest, OPERATIONS_PATH, send } from '../../admin/operation-requests.ts';
import { type AskLab, problem } from '../../admin/thread-messages.ts';
import type { LabJoined, LabParts } from '../../appliance.ts';
import { getAccount } from '../../auth/accounts.ts';
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
import { failed, Refused } from '../../refused.ts';
import { type Database, writing } from '../../store/database.ts';
import type { InstallationKind } from '../../store/installation.ts';
import { formatMs, parseDuration } from '../../time.ts';
import { SAMPLE_ACCOUNT } from '../generate/rows.ts';
import { type Fault, Faults } from './faults.ts';
import { Feed } from './feed.ts';
import { LabRequest } from './lab-request.ts';
import { Report } from './report.ts';

type Acts = {
  readonly [Name in LabName]: (values: ValuesOf<MembersOf<Name>>, operation: AskLab['operation']) => unknown;
};

const ASKER = { way: 'api', by: { actor: 'test' }, mayAct: true, isValid: () => true } as const;
const NOT_HERE =
  'A lab answers operations to its own machine only: ask on its loopback address, or localhost, and not from a page of another origin.';

/** How far ahead of the head the cursor is that proves that the end of the log is lost: soon after it. */
const LOST_POSITIONS = 1_000_000;

export class Lab implements LabJoined {
  readonly feed: Feed;
  readonly faults = new Faults();
  readonly #seed: string;
  readonly #config: Config;
  readonly #kind: InstallationKind;
  readonly requests = new Report();
  readonly #startedAt = formatMs(now());
  #parts: LabParts | null = null;
  /** Resolves when the last operation is done. */
  #last: Promise<unknown> = Promise.resolve();
  /** Called after the clock was moved. */
  onMoved: () => void = () => {};

  constructor(seed: string, config: Config, kind: InstallationKind) {
    this.#seed = seed;
    this.#config = config;
    this.#kind = kind;
    this.feed = new Feed(seed, config, () => this.#running());
  }

  /** @param parts of the appliance, whose server calls the returned hooks */
  join(parts: LabParts): LabJoined {
    this.#parts = parts;
    return this;
  }

  control(request: IncomingMessage, response: ServerResponse): boolean {
    // A demonstration may have an export of its user.
    if (this.#kind !== 'lab' || !(request.url ?? '').startsWith(OPERATIONS_PATH)) return false;
    response.on('error', () => {});
    if (isOwn(request)) {
      const answered = answerRequest(request, response, this.#running().operations(), ASKER);
      answered.catch(() => response.destroy());
    } else send(response, problem(403, NOT_HERE, 'forbidden'));
    return true;
  }

  begin(exchange: Exchange, baseUrl: string): LabRequest {
    const { request } = exchange;
    const endpoint = exchange.endpoint?.id ?? null;
    const waits = () => this.#running().waiting.isIdle(request.socket);
    const record = this.requests.begin(request, endpoint, waits);
    const found = endpoint === null ? null : this.faults.next(endpoint);
    const fault = found === null ? null : this.#redirected(found, exchange, endpoint);
    const { daily_rows: dailyRows } = this.#config.limits;
    return new LabRequest({ exchange, fault, record, baseUrl, dailyRows });
  }

  /** Drops the first files before any operation. In a later turn, so that the ingest thread starts meanwhile. */
  fill(drop: (feed: Feed) => Promise<void>): Promise<void> {
    const filled = nextTurn().then(() => drop(this.feed));
    this.#last = filled.catch(() => {});
    return filled;
  }

  /** Does an operation. @throws Refused if it cannot be done */
  async run({ name, values, operation }: AskLab): Promise<unknown> {
    if (!isLabName(name)) throw new Error(`there is no operation lab ${name}`);
    if (isRead(name, values)) return this.#act(name, values, operation);
    // One after the other: a drop must not replace a file that waits.
    const done = this.#last.then(() => {
      this.feed.subscriptions = this.#withAccess(operation, listSubscriptions);
      return this.#act(name, values, operation);
    });
    this.#last = done.catch(() => {});
    return done;
  }

  /** @param values have come through threads */
  #act<Name extends LabName>(name: Name, values: object, operation: AskLab['operation']): unknown {
    return this.#acts[name](readMembers(membersOf(name), values), operation);
  }

  clock() {
    return { now: new Date(now()).toISOString() };
  }

  readonly shown = (): LabState => {
    const faults = this.faults.list().map(({ id, fired, left, seen: _, ...members }) => {
      return { id, members, fired, left };
    });
    return { now: formatMs(now()), seed: this.#seed, faults };
  };

  /** Resolves when every dropped file is processed. */
  rested(): Promise<void> {
    return this.#running().ingest.rested();
  }

  readonly #acts: Acts = {
    clock: async (given) => {
      const [when, ...more] = Object.values(given);
      if (when === undefined) return this.clock();
      if (more.length > 0)
        throw new Refused('invalid_request', 'clock: expected only one of when, advance and to');
      const byMs = parseDuration(when) ?? (parseLabTime(when) ?? 0) - now();
      if (parseLabTime(formatMs(now() + byMs)) === null)
        throw new Refused('invalid_request', 'clock: expected to stay between 2001 and 2099');
      moveClock(byMs);
      this.#running().waiting.changed();
      await this.rested();
      this.onMoved();
      return this.clock();
    },
    drop: (body) => this.feed.drop(body),
    late: (body) => this.feed.late(body),
    correct: ({ id, score }) => this.feed.score(id, score),
    gap: async ({ export: name, status, window }, operation) => {
      const wanted = parseLabTime(window ?? '');
      const shown = (startMs: number) => ({ export: name, window_start: formatMs(startMs), status });
      if (status === 'failed') return shown(await this.feed.fail(name, wanted));
      const window_start = wanted ?? this.feed.missable(name);
      const request: IngestRequest = { kind: 'gap', export: name, window_start, status };
      this.#withAccess(operation, (db) => writing(db, () => noteOperation(db, request)));
      await this.#running().ingest.ask(request);
      await this.rested();
      return shown(window_start);
    },
    restore: async () => {
      const { detections, ingest } = this.#running();
      const { position: head } = readStreamHead(detections());
      ingest.endLost({ position: head + LOST_POSITIONS, epoch: epochAt(detections(), head) });
      await ingest.rested();
      return { versions_raised_by: 1000 };
    },
    allowance: ({ account: account_id = SAMPLE_ACCOUNT.id, used }, operation) => {
      const { dailyRows } = this.#running();
      const account = this.#withAccess(operation, (db) => getAccount(db, account_id));
      const allowance = account.daily_rows ?? this.#config.limits.daily_rows;
      const id = accountUsageId(account);
      dailyRows.add('account', id, (used ?? allowance) - dailyRows.used('account', id, now()), now());
      return { used: used ?? allowance, daily_rows: allowance };
    },
    'fault add': (spec) => ({ id: this.faults.add(spec).id, ...spec }),
    'fault list': () => this.faults.list(),
    'fault clear': ({ id }) => this.faults.remove(id ?? null),
    report: ({ after = 0, clear = false }) => {
      const head = { seed: this.#seed, started_at: this.#startedAt, ...this.clock() };
      const read = { faults: this.faults.list(), ...this.requests.read(after) };
      const report = { ...head, real_now: new Date().toISOString(), ...read };
      if (clear) this.requests.clear();
      return report;
    },
  };

  /** Changes the request for a shorter page, or into that for the page before. @returns null if there is none */
  #redirected(fault: Fault, exchange: Exchange, endpoint: string | null): Fault | null {
    const { duplicate, page_rows, pages } = fault.spec;
    const parameters = new URLSearchParams(exchange.query);
    // Another endpoint would refuse the parameter.
    if (page_rows !== undefined && (endpoint === 'listChanges' || endpoint === 'listDetections')) {
      const limit = Number(parameters.get('limit') ?? PAGE_ROWS_DEFAULT);
      if (page_rows < limit) parameters.set('limit', `${page_rows}`);
    } else if (duplicate === true) {
      const before = this.requests.pageBefore(parameters.get('cursor') ?? '', pages);
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

  #withAccess<Result>(operation: AskLab['operation'], use: (db: Database) => Result): Result {
    using db = openAccess(this.#config.dataFolder, { kind: this.#kind, operation });
    return use(db);
  }

  #running(): LabParts {
    if (this.#parts === null) throw failed('the lab is starting. Try again in a moment.');
    return this.#parts;
  }
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
function isOwn(request: IncomingMessage): boolean {
  const { socket, headers } = request;
  const isLocal = isLoopback(normalAddress(socket.remoteAddress ?? '') ?? '');
  return isLocal && isHostAccepted(headers.host, []) && !isForeign(request);
}
