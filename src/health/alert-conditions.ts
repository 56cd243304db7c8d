/**
 * Alerts of the running appliance that no database records: whoever finds the cause opens and closes them. They are
 * kept in memory, so a damaged database or a full disk does not hide them.
 */
import type { Now } from '../time.ts';
import { type Alert, type AlertName, alertKey } from './alert-texts.ts';

export type Conditions = ReturnType<typeof createConditions>;

/** @param onOpened called with each alert that was not open before */
export function createConditions(now: Now, onOpened: (alert: Alert) => void = () => {}) {
  const conditions = new Map<string, Alert>();
  return {
    /** Opens an alert, or updates its detail; null closes it. @param subject distinguishes alerts of one name */
    set(name: AlertName, detail: string | null, subject = ''): void {
      const key = alertKey({ name, of: subject });
      const before = conditions.get(key);
      if (detail === null) return void conditions.delete(key);
      const alert = { name, of: subject, since: before?.since ?? now(), detail };
      conditions.set(key, alert);
      if (before === undefined) onOpened(alert);
    },
    has: (name: AlertName) => [...conditions.values()].some((alert) => alert.name === name),
    open: () => [...conditions.values()],
  };
}
