/** Nothing is served from a damaged database: endpoints that read it answer 500 once damage was found anywhere. */
import type { HealthSource } from '../health/monitor.ts';
import type { Answer, Route } from './routes.ts';

const READS_DETECTIONS = /^\/v1\/(detections|me)\b/;

/** The route, which now tells of damage that it meets, and refuses to answer where damage is known. */
export function guardDamaged(route: Route, source: HealthSource): Route {
  if (route.access !== 'key' || !READS_DETECTIONS.test(route.path)) return route;
  const { answer } = route;
  const told = (error: unknown): never => {
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
        return answered instanceof Promise ? answered.catch(told) : answered;
      } catch (error) {
        return told(error);
      }
    },
  };
}
