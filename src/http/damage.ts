/** Nothing is served from a damaged database: endpoints that read it answer 500 once damage was found anywhere. */
import type { HealthSource } from '../health/monitor.ts';
import type { Answer, Route } from './routes.ts';

/** The same route; it reports the damage that it meets, and does not answer once damage is known. */
export function guardDamaged(route: Route, source: HealthSource): Route {
  if (route.access !== 'key' || !route.readsDetections) return route;
  const { answer } = route;
  const report = (error: unknown): never => {
    source.noteFault(error);
    throw error;
  };
  return {
    ...route,
    answer(call, credential): Answer | Promise<Answer> {
      if (source.isDamaged())
        throw new Error('detections.db is damaged: no detections are served until the next start');
      try {
        const answered = answer(call, credential);
        return answered instanceof Promise ? answered.catch(report) : answered;
      } catch (error) {
        return report(error);
      }
    },
  };
}
