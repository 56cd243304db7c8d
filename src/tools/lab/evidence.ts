/** What the lab's exam observes of a client: its requests from the report of the lab, its ends, and its copy. */
import type { RequestRecord } from './report.ts';

/**
 * The client was killed, or ended by itself with an exit code (null: unknown), after the request with this number. It was
 * then started again.
 */
export type Moment = Readonly<{ kind: 'killed' | 'ended'; after: number; code: number | null }>;

/** What the command prints that prints the copy. `versions`: the highest of each id; `repeated`: ids of several lines. */
export type Copied = Readonly<{ versions: ReadonlyMap<string, number>; repeated: ReadonlySet<string> }>;

/** The copy at one moment, and what the service has. */
export type Compared = Copied & Readonly<{ expected: Copied['versions'] }>;

export class Evidence {
  /** The client's own requests to the API, in the order of arrival. */
  requests: readonly RequestRecord[] = [];
  readonly moments: Moment[] = [];
  /** Number of the last request before the exam answered with 400 or 401; null: not reached. */
  invalidAfter: number | null = null;
  unauthorizedAfter: number | null = null;
  /** What the client did not finish in time; null: it finished everything. */
  unfinished: string | null = null;
  isRestarted = false;
  /** Whether the client was killed between two pages of a period. */
  isKilledInWalk = false;
  /** Whether a command prints the copy. */
  hasCopy = false;
  /** Before the restore; null: not read. */
  copy: Compared | null = null;
  /** After the restore; null: not read. */
  restored: Compared | null = null;
  /** Detections that were delivered right before a kill. */
  readonly atKills = new Set<string>();
  /** A detection of which a lower version was delivered, and the copy's then (null: none); null: not tried. */
  lower: Readonly<{ id: string; delivered: number; stored: number; copied: number | null }> | null = null;
}

/** Two requests in a row. */
export type Pair = ReturnType<typeof pairs>[number];

export function pairs(requests: readonly RequestRecord[], { moments }: Evidence) {
  return requests.slice(1).map((next, index) => {
    const request = requests[index] ?? next;
    const arrivedMs = Date.parse(next.real_at);
    const between = moments.filter(({ after }) => after >= request.number && after < next.number);
    return {
      request,
      next,
      /** From the arrival of one to that of the next. */
      ms: arrivedMs - Date.parse(request.real_at),
      /** From the end of the answer to one to the arrival of the next. */
      pauseMs: arrivedMs - Date.parse(request.real_finished_at ?? next.real_at),
      isKilled: between.some(({ kind }) => kind === 'killed'),
      /** The client was killed, or ended by itself. */
      isRestarted: between.length > 0,
    };
  });
}

/** Requests for changes, each with the next one of the same filters. */
export function chains(evidence: Evidence): Pair[] {
  const changes = evidence.requests.filter(({ endpoint }) => endpoint === 'listChanges');
  return [...Map.groupBy(changes, filtersOf).values()].flatMap((group) => pairs(group, evidence));
}

/** The filters of a request as text: equal filters give equal texts. */
export function filtersOf({ parameters }: RequestRecord): string {
  const places = ['cursor', 'since', 'limit', 'to'];
  const filters = Object.entries(parameters).filter(([name]) => !places.includes(name));
  return JSON.stringify(filters.sort(([first], [other]) => (first < other ? -1 : 1)));
}

/** A page whose body a fault has cut. */
export const isDamaged = ({ fault, status, complete }: RequestRecord): boolean =>
  fault !== null && status === 200 && complete === false;

export const isGoodPage = ({ status, complete, has_more }: RequestRecord): boolean =>
  status === 200 && complete === true && has_more !== null;
