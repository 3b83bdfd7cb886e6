/* SPDX-License-Identifier: MIT */

/* Workers, and the nodes of the server. */

const TOPICS_SHOWN = 16; /* of a worker */

function workersView() {
  const self = {tab: 'workers', title: 'Workers', up: '#/', every: 2000};
  self.load = async () => {
    self.list = (await get('api/workers')).workers;
  };
  self.render = () => [
    h('div', {class: 'title'}, h('h1', {}, 'Workers'),
      h('span', {class: 'quiet'}, plural(self.list.length, 'worker'))),
    h('div', {class: 'panel'}, self.list.length === 0
      ? h('p', {class: 'empty'}, 'No worker runs. weir run starts one.')
      : table('Workers', [
        {name: 'Worker', cls: 'name', bare: true, cell: (worker) => [
          foreign(worker.name, 'id'),
          h('div', {class: 'under quiet small'}, foreign(worker.host),
            ` · pid ${worker.pid} · weir `, visible(worker.version))]},
        {name: 'Topics', cls: 'text', cell: (worker) => [
          worker.topics.slice(0, TOPICS_SHOWN).map(({topic}, i) => [
            i > 0 && ', ', h('a', {href: topicLink(topic)}, foreign(topic))]),
          worker.topics_total > TOPICS_SHOWN &&
            ` and ${worker.topics_total - TOPICS_SHOWN} more`]},
        {name: 'Running', cls: 'num', cell: (worker) => whole.format(worker.running)},
        {name: 'Held', cls: 'num', cell: (worker) => whole.format(worker.held)},
        {name: 'Lag of its loop', cls: 'num', cell: (worker) =>
          worker.lag_us == null ? '–' : spanText(worker.lag_us / 1000)},
        {name: 'Since', cell: (worker) => timeNode(worker.since_ms)},
        {name: 'Connection', cell: (worker) => [visible(worker.transport || ''),
          worker.connections > 1 &&
            h('span', {class: 'warn'}, ` ▲ ${worker.connections - 1} reconnects`),
          worker.stopping && h('span', {class: 'badge warn'}, 'stopping')]},
      ], self.list, (worker) => worker.name)),
  ];
  return self;
}

function nodesView() {
  const self = {tab: 'nodes', title: 'Nodes', up: '#/', every: 5000};
  self.load = async () => {
    self.list = (await get('api/nodes')).nodes;
  };
  self.render = () => [
    h('div', {class: 'title'}, h('h1', {}, 'Nodes')),
    h('div', {class: 'panel'}, self.list.length === 0
      ? h('p', {class: 'empty'}, 'Asking the server …')
      : table('Nodes', [
        {name: 'Node', cls: 'name', bare: true, cell: (node) =>
          foreign(node.name, 'id')},
        {name: 'State', cell: (node) => node.up
          ? h('span', {class: 'badge good'}, '● up')
          : [h('span', {class: 'badge bad'}, '▲ away'), ' ',
            foreign(node.why || '')]},
        {name: 'Role', cell: (node) => visible(node.role || '–')},
        {name: 'Version', cell: (node) => visible(node.version || '–')},
        {name: 'Replicas', cls: 'num', cell: (node) => String(node.replicas) +
          (node.behind_bytes > 0 ? `, ${sizeText(node.behind_bytes)} behind` : '')},
        {name: 'Memory', cls: 'num', cell: (node) => sizeText(node.memory_bytes) +
          (node.memory_max_bytes > 0 ? ' of ' + sizeText(node.memory_max_bytes) : '')},
        {name: 'Clients', cls: 'num', cell: (node) => String(node.clients)},
      ], self.list, (node) => node.name)),
  ];
  return self;
}
