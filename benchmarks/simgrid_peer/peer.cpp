// Fluid flows in SimGrid: reads a flow file, prints the CPU seconds of the solve and run, then one end for each flow.
//
// File: "links L", L capacities; "flows F", "nodes N", then for each flow "measured bits from to n link...". All start
// at 0. Flows that are not measured are background: they outlast the others. Settings for pure max-min sharing.
#include <simgrid/s4u.hpp>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <string>
#include <unordered_set>
#include <vector>

namespace sg4 = simgrid::s4u;

struct Flow {
    bool measured;
    double bits;
    std::vector<int> links;
    sg4::Host *from, *to;
};

static double cpu_seconds()
{
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

static void carry(const std::vector<Flow>* flows)
{
    // A communication that nobody holds any more would be cancelled.
    std::vector<sg4::CommPtr> all;
    double begun = cpu_seconds();
    for (const auto& flow : *flows) {
        auto comm = sg4::Comm::sendto_init(flow.from, flow.to);
        comm->set_payload_size(static_cast<uint64_t>(flow.bits));
        comm->start();
        all.push_back(comm);
    }
    for (size_t i = 0; i < flows->size(); i++)
        if ((*flows)[i].measured)
            all[i]->wait();
    std::printf("%.9f\n", cpu_seconds() - begun);
    for (size_t i = 0; i < flows->size(); i++)
        if ((*flows)[i].measured)
            std::printf("%.17g\n", all[i]->get_finish_time());
    std::fflush(stdout);
    std::_Exit(0);
}

int main(int argc, char** argv)
{
    sg4::Engine engine(&argc, argv);
    for (const char* setting : {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0",
                                "network/bandwidth-factor:1", "network/latency-factor:1", "network/weight-S:0"})
        sg4::Engine::set_config(setting);
    std::ifstream file(argv[1]);
    std::string word;
    size_t count, length;
    auto* zone = sg4::create_full_zone("fabric");
    std::vector<sg4::Link*> links;
    file >> word >> count;
    for (size_t i = 0; i < count; i++) {
        double capacity;
        file >> capacity;
        links.push_back(zone->create_link("l" + std::to_string(i), capacity)->set_latency(0)->seal());
    }
    file >> word >> count;
    size_t nodes;
    file >> word >> nodes;
    std::vector<sg4::Host*> hosts;
    for (size_t i = 0; i < nodes; i++)
        hosts.push_back(zone->create_host("h" + std::to_string(i), 1e9)->seal());
    std::vector<Flow> flows(count);
    std::unordered_set<size_t> routed;
    for (auto& flow : flows) {
        size_t from, to;
        file >> flow.measured >> flow.bits >> from >> to >> length;
        flow.links.resize(length);
        std::vector<sg4::LinkInRoute> route;
        for (auto& link : flow.links) {
            file >> link;
            route.emplace_back(links[link]);
        }
        flow.from = hosts[from];
        flow.to = hosts[to];
        // Two flows between the same hosts have one route.
        if (routed.insert(from * nodes + to).second)
            zone->add_route(flow.from->get_netpoint(), flow.to->get_netpoint(), nullptr, nullptr, route, false);
    }
    zone->seal();
    sg4::Actor::create("master", hosts[0], carry, &flows);
    engine.run();
}
