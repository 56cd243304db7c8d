/** What besides a file's content decides how its rows come out, as short fingerprints for the journal. */
import { createHash } from 'node:crypto';
import { type Static, Type } from '@sinclair/typebox';
import type { OrderWithoutSession } from './reader-client.ts';
import type { Workshop } from './workshop.ts';

export const RulesSchema = Type.Object({
  /** Of the streams that there are, and the subscriptions that are licensed. */
  subscriptions: Type.String(),
  /** Of the settings, the secret and the version of the program. */
  settings: Type.String(),
});
export type Rules = Static<typeof RulesSchema>;

const DIGITS = 12;

export function rulesOf({ settings }: Pick<Workshop, 'settings'>, order: OrderWithoutSession): Rules {
  const ascending = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b);
  return {
    subscriptions: fingerprint([ascending(order.streams), ascending(order.licensed)]),
    settings: fingerprint([
      order.earliest,
      Buffer.from(settings.photo_key).toString('hex'),
      settings.program,
    ]),
  };
}

/** In words what is other than it was; null when nothing is. */
export function whyOtherRules(then: Rules, now: Rules): string | null {
  if (then.subscriptions !== now.subscriptions) return 'a subscription or a licence was changed since';
  if (then.settings !== now.settings) return 'the settings, the secret or the program are others since';
  return null;
}

function fingerprint(what: unknown): string {
  return createHash('sha256').update(JSON.stringify(what)).digest('hex').slice(0, DIGITS);
}
