/**
 * Alerts of the running appliance that no database records: whoever finds the cause opens and closes them. They are
 * kept in memory, so a damaged database or a full disk does not hide them.
 */
import type { Now } from '../time.ts';
import { type Alert, type AlertName, alertKey } from './alert-texts.ts';

export interface Conditions {
  /**
   * Opens an alert, or updates its detail; null closes it.
   *
   * @param of distinguishes alerts of one name, such as those of two certificates
   */
  set(name: AlertName, detail: string | null, of?: string): void;
  has(name: AlertName): boolean;
  open(): Alert[];
}

/** @param onOpened called with each alert that was not open before */
export function createConditions(now: Now, onOpened: (alert: Alert) => void = () => {}): Conditions {
  const conditions = new Map<string, Alert>();
  return {
    set(name, detail, of = '') {
      const key = alertKey({ name, of });
      const before = conditions.get(key);
      if (detail === null) {
        conditions.delete(key);
        return;
      }
      const alert = { name, of, since: before?.since ?? now(), detail };
      conditions.set(key, alert);
      if (before === undefined) onOpened(alert);
    },
    has: (name) => [...conditions.values()].some((alert) => alert.name === name),
    open: () => [...conditions.values()],
  };
}
