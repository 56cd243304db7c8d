/** The faults of a lab, and which of them applies to a request: one at most, the first that was added. */
import { type FaultSpec, membersOf, STATUS_OF_CODE } from '../../operations/lab.ts';
import { PROBLEMS } from '../../problem-titles.ts';
import { invalid } from '../../query/parameters.ts';
import { failed, Refused } from '../../refused.ts';

export interface Fault {
  /** The value of `X-Wirewatch-Lab`. */
  readonly id: string;
  readonly spec: FaultSpec;
  /** Requests that it met. One to which it could not be applied is taken off again. */
  fired: number;
  /** Requests to its endpoint since it was added. */
  seen: number;
}

const FAULTS_MAX = 1000;
/** Members that choose the requests, or belong to another member. Every other member has an effect. */
const NO_EFFECTS = ['endpoint', 'times', 'after', 'retry_after', 'retry_after_date', 'pages'];
const EFFECTS = Object.keys(membersOf('fault add')).filter((name) => !NO_EFFECTS.includes(name));

export function createFaults() {
  let armed: readonly Fault[] = [];
  let added = 0;

  const list = () =>
    armed.map(({ id, spec, fired, seen }) => ({ id, ...spec, fired, seen, left: leftOf({ spec, fired }) }));

  return {
    list,
    /** @throws Refused `invalid_request` for members that contradict each other */
    add(spec: FaultSpec): Fault {
      check(spec);
      if (armed.length >= FAULTS_MAX)
        throw failed(`there are ${FAULTS_MAX} faults; remove some with: wirewatch lab fault clear`);
      added += 1;
      const fault = { id: `f${added}`, spec, fired: 0, seen: 0 };
      armed = [...armed, fault];
      return fault;
    },
    /** @returns the fault of a request to an endpoint; null: none */
    next(endpoint: string): Fault | null {
      for (const fault of armed) {
        const { endpoint: own = endpoint, after = 0 } = fault.spec;
        if (leftOf(fault) === 0 || own !== endpoint) continue;
        fault.seen += 1;
        if (fault.seen <= after) continue;
        fault.fired += 1;
        return fault;
      }
      return null;
    },
    /** @param id null: all. @returns what was removed, as in the list. @throws Refused `not_found` */
    remove(id: string | null) {
      const removed = list().filter((fault) => id === null || fault.id === id);
      if (id !== null && removed.length === 0)
        throw new Refused('not_found', `there is no fault ${id}. List them with: wirewatch lab fault list`);
      armed = armed.filter((fault) => id !== null && fault.id !== id);
      return removed;
    },
  };
}

const leftOf = ({ spec, fired }: Pick<Fault, 'spec' | 'fired'>) => (spec.times ?? 1) - fired;

/** The error code of a fault; null for the answer of a proxy, and for a fault that is not an error. */
export function codeOf({ status, code }: FaultSpec): string | null {
  if (code !== undefined) return code;
  return Object.entries(PROBLEMS).find(([, problem]) => problem.status === status)?.[0] ?? null;
}

function check(spec: FaultSpec): void {
  const { status, code, retry_after } = spec;
  if (!Object.entries(spec).some(([name, value]) => EFFECTS.includes(name) && value !== false))
    throw invalid(`a fault needs an effect: expected at least one of ${EFFECTS.join(', ')}`);
  if (status !== undefined && code !== undefined && STATUS_OF_CODE.get(code) !== status)
    throw invalid(`code: ${code} belongs to the status ${STATUS_OF_CODE.get(code)}, not to ${status}`);
  if (retry_after !== undefined && codeOf(spec) === null && (status ?? 0) < 500)
    throw invalid('retry_after: needs a status such as 429 or 503');
  if (retry_after !== undefined && code === 'daily_allowance')
    throw invalid('retry_after: daily_allowance waits until 00:00 UTC; leave it out');
}
