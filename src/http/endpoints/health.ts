/** GET and HEAD /v1/health: whether all is well, for load balancers and for those who watch. */
import type { HealthSource } from '../../health/monitor.ts';
import type { OpenRoute } from '../routes.ts';

export function healthRoute(source: HealthSource): OpenRoute {
  return {
    path: '/v1/health',
    method: 'GET',
    head: true,
    access: 'open',
    answer: () => {
      const health = source.health();
      return { status: health.status === 'ok' ? 200 : 503, body: JSON.stringify(health) };
    },
  };
}
