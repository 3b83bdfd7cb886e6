/* SPDX-License-Identifier: MIT */

/* Workers, and the nodes of the server. */

const TOPICS_SHOWN = 16; /* of a worker */

const workerLink = (name) => '#/workers/' + encodeURIComponent(name);

/* How many jobs of a topic run at a worker, of how many may. */
function busyNode({concurrency, running}) {
  if (concurrency == null) return h('span', {class: 'quiet'}, 'not told');
  const text = `${whole.format(running)} of ${whole.format(concurrency)}`;
  return running < concurrency ? text
    : h('span', {class: 'warn'}, '▲ ', text, ': no room');
}

/* One worker with all that it serves. */
function workerTopics(worker) {
  return h('div', {class: 'panel'},
    h('h2', {}, 'Topics of ', foreign(worker.name, 'id')),
    table('Topics', [
      {name: 'Topic', cls: 'name', bare: true, cell: (row) =>
        h('a', {href: topicLink(row.topic)}, foreign(row.topic))},
      {name: 'Running', cls: 'num', cell: busyNode},
      {name: 'Held', cls: 'num', cell: (row) => whole.format(row.held)},
    ], worker.topics, (row) => row.topic));
}

/* Who serves one topic. */
function serversPanel(told) {
  const {workers} = told;
  return [h('div', {class: 'panel'}, workers.length === 0
    ? h('p', {class: 'empty'}, 'Nobody serves it.')
    : table('Workers', [
      {name: 'Worker', cls: 'name', bare: true, cell: (worker) => [
        h('a', {href: workerLink(worker.name)}, foreign(worker.name, 'id')),
        worker.stopping && h('span', {class: 'badge warn'}, 'stopping')]},
      {name: 'Concurrency', cls: 'num', cell: ({topics: [row]}) =>
        row.concurrency == null ? '–' : whole.format(row.concurrency)},
      {name: 'Running', cls: 'num', cell: ({topics: [row]}) => busyNode(row)},
      {name: 'Held', cls: 'num', cell: ({topics: [row]}) =>
        whole.format(row.held)},
      {name: 'Lag of its loop', cls: 'num', cell: (worker) =>
        worker.lag_us == null ? '–' : spanText(worker.lag_us / 1000)},
    ], workers, (worker) => worker.name + ' ' + worker.pid)),
  pagesOf(told, workers.length)];
}

/* All, or those of one name. */
function workersView(name) {
  const self = {name: 'workers/' + (name || ''), tab: 'workers',
    title: name || 'Workers', up: name ? '#/workers' : '#/', every: 2000};
  self.take = (fields) => { self.offset = Number(fields.get('offset')) || 0; };
  self.load = async () => {
    self.read = await get('api/workers' + query({name, offset: self.offset,
      limit: PAGE}));
    self.list = self.read.workers;
  };
  const step = (by) => goTo(addressOf(name ? ['workers', name] : ['workers'],
    {offset: Math.max(0, self.offset + by) || ''}));
  self.does = {next: () => step(PAGE), previous: () => step(-PAGE)};
  self.render = () => [
    name && h('p', {class: 'crumbs'}, h('a', {href: '#/workers'}, 'Workers')),
    h('div', {class: 'title'}, h('h1', {}, name ? foreign(name, 'id') : 'Workers'),
      !name && h('span', {class: 'quiet'}, plural(self.read.found, 'worker'))),
    h('div', {class: 'panel'}, self.list.length === 0
      ? h('p', {class: 'empty'}, name ? 'It is not there.'
        : 'No worker runs. weir run starts one.')
      : table('Workers', [
        {name: 'Worker', cls: 'name', bare: true, cell: (worker) => [
          h('a', {href: workerLink(worker.name)}, foreign(worker.name, 'id')),
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
    pagesOf(self.read, self.list.length),
    name && self.list.map(workerTopics),
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
        {name: 'State', cell: (node) => [node.up
          ? h('span', {class: 'badge good'}, '● up')
          : h('span', {class: 'badge bad'}, '▲ away'), ' ',
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
